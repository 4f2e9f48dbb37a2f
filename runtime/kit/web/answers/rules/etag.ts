/** Computes a strong ETag for a text that is rendered for each request. */
import { createHash } from 'node:crypto'

/** Returns the ETag of a text, with its quotes. */
export const etagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
