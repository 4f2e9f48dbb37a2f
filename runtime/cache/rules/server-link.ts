/** Decides which machine server the pages of the cache link back to. */
import { decodePart } from '../../kit/net/rules/image-location.ts'

/** No host name with its port is longer. */
const MAX_LENGTH = 300

/**
 * Returns the origin of a server that a link names, else null: only one on the host by which the
 * cache is reached itself, so that no link makes this page lead elsewhere. `ownHost` is with or
 * without a port.
 */
export function parseServerLink(text: string, ownHost: string): string | null {
  const url = text.length > MAX_LENGTH ? null : URL.parse(text)
  const own = URL.parse(`http://${ownHost}`)
  if (url === null || own === null || !/^https?:$/.test(url.protocol)) return null
  // No user, path, query or fragment.
  const isPlain = url.href === `${url.origin}/`
  return isPlain && url.hostname === own.hostname ? url.origin : null
}

/**
 * Renders a link to a page of the server, by way of one that reads the catalog first, so that a new
 * image can be picked at once.
 */
export const linkToServer = (origin: string, path: string): string =>
  `${origin}/ui/cache/back?to=${encodeURIComponent(path)}`

const COOKIE = 'flasher-server'
const WEEK_SECONDS = 7 * 24 * 3600

/** Renders the `Set-Cookie` value that remembers the server for a week. */
export const renderServerCookie = (origin: string): string =>
  `${COOKIE}=${encodeURIComponent(origin)}; Path=/ui; Max-Age=${WEEK_SECONDS}; HttpOnly; SameSite=Strict`

/**
 * Reads the address that the cookie holds, or null; callers check it again, as anybody can send a
 * cookie.
 */
export function readServerCookie(header: string | null): string | null {
  const [, value] = new RegExp(`(?:^|; *)${COOKIE}=([^;]+)`).exec(header ?? '') ?? []
  return value === undefined ? null : decodePart(value)
}
