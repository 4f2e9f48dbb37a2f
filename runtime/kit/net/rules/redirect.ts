/** Decides where a redirect leads, and which secrets may be sent there. */
import type { HttpTarget } from './image-location.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export const REDIRECT_LIMIT = 10

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
export const isRedirect = (status: number): boolean => REDIRECTS.has(status)

/**
 * Returns the next hop; a refusal says in words why it is not taken. Credentials go to the origin
 * they were given for and to no other; a request that has some never leaves https for http.
 */
export function nextTarget(
  from: HttpTarget,
  location: string | undefined,
): Result<HttpTarget, string> {
  const next = location === undefined ? null : URL.parse(location, from.url)
  if (next === null) return refuse('redirected to nowhere')
  if (next.protocol !== 'http:' && next.protocol !== 'https:') {
    return refuse(`redirected to ${next.protocol}//, which is neither http nor https`)
  }
  const here = new URL(from.url)
  if (from.authorization !== null && here.protocol === 'https:' && next.protocol === 'http:') {
    return refuse('redirected from https to http, where the password could be read by others')
  }
  const isSameOrigin = here.origin === next.origin
  // What a server puts into the address as credentials is not ours to pass on.
  next.username = ''
  next.password = ''
  next.hash = ''
  return accept({ url: next.href, authorization: isSameOrigin ? from.authorization : null })
}
