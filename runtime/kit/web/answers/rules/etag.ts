/** Entity tags: computed for texts that are rendered for each request, and compared before a change. */
import { createHash } from 'node:crypto'

export const etagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`

/**
 * By `If-Match`, which guards against overwriting what another changed, and by `If-None-Match`, of
 * which `*` creates only (RFC 9110, 13.1). `tag`: of what is there; null: nothing.
 */
export function meetsConditions(headers: Pick<Headers, 'get'>, tag: string | null): boolean {
  const [wanted, unwanted] = [headers.get('if-match'), headers.get('if-none-match')]
  if (wanted !== null && !isNamed(wanted, tag)) return false
  return unwanted === null || !isNamed(unwanted.replaceAll('W/', ''), tag)
}

const isNamed = (header: string, tag: string | null): boolean =>
  tag !== null && (header.trim() === '*' || header.split(',').some((each) => each.trim() === tag))
