/** A strong ETag of a text that is made anew for each answer. */
import { createHash } from 'node:crypto'

/** With its quotes. */
export const etagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
