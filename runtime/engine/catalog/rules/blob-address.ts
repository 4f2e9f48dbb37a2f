/** Builds and parses the address of a source's bytes at a cache service: `<base>/b/<token>/<name>`. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** Browsers and proxies pass no longer address. */
const MAX_TOKEN_LENGTH = 16_384

/** In a query: the SHA-256 of the version that is asked for. */
export const VERSION_PARAMETER = 'sha256'

/** Without slashes at its end; a missing scheme becomes `http://`. */
export function renderCacheBase(text: string): string {
  const bare = text.trim().replace(/\/+$/, '')
  return bare === '' || /^[a-z][a-z0-9+.-]*:\/\//i.test(bare) ? bare : `http://${bare}`
}

/** Unpadded base64url of the source, byte for byte; the last part only helps people. */
export function blobUrl(cacheBase: string, source: string): string {
  const token = Buffer.from(source, 'utf8').toString('base64url')
  return `${renderCacheBase(cacheBase)}/b/${token}/${encodeURIComponent(blobName(source))}`
}

/** As spelled in the source; `download` where its path has no last part. */
export function blobName(source: string): string {
  const path = source.toWellFormed().replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  const [plain = ''] = path.split(/[?#]/, 1)
  return plain.split('/').at(-1) || 'download'
}

/** Tolerates padding, but no other second spelling. */
export function parseBlobToken(token: string): Result<string, 'not-a-token'> {
  const bare = token.replace(/={1,2}$/, '')
  if (bare === '' || bare.length > MAX_TOKEN_LENGTH) return refuse('not-a-token')
  const bytes = Buffer.from(bare, 'base64url')
  const source = bytes.toString('utf8')
  const isExact = bytes.toString('base64url') === bare && Buffer.from(source).equals(bytes)
  return isExact ? accept(source) : refuse('not-a-token')
}

/**
 * A loopback address means another host to each machine. `host`: the server's without a port, as
 * the machine asked for it.
 */
export function replaceLoopback(address: string, host: string): string {
  const url = URL.parse(address)
  if (url === null || !isLoopback(url.hostname)) return address
  url.hostname = host
  return url.href
}

export const isLoopback = (host: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(host)
