/** Decides which machine server the pages of the cache link back to. */
import { decodePart } from '#kit/net/rules/image-location.ts'

/** No host name with a port is longer. */
const MAX_LENGTH = 300

/**
 * Null: no origin on the host of this cache, as no link may lead elsewhere. The port of `ownHost`
 * does not matter.
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
 * Goes through a page that reads the catalog first, so that a new image can be selected at once.
 */
export const linkToServer = (origin: string, path: string): string =>
  `${origin}/ui/cache/back?to=${encodeURIComponent(path)}`

const COOKIE = 'flasher-server'
const WEEK_SECONDS = 7 * 24 * 3600

export const renderServerCookie = (origin: string): string =>
  `${COOKIE}=${encodeURIComponent(origin)}; Path=/ui; Max-Age=${WEEK_SECONDS}; HttpOnly; SameSite=Strict`

/** Null: none. Callers check it again, as anybody can send a cookie. */
export function readServerCookie(header: string | null): string | null {
  const [, value] = new RegExp(`(?:^|; *)${COOKIE}=([^;]+)`).exec(header ?? '') ?? []
  return value === undefined ? null : decodePart(value)
}
