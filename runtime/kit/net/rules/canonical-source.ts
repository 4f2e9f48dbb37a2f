/** The one spelling of an image's source, which its identity is made of. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

const DEFAULT_PORT: Readonly<Record<string, number>> = { http: 80, https: 443 }

/**
 * Returns the one spelling of a source. It must be the deployed one to the letter, since refs are
 * kept in fleets and fixtures: even that the brackets of an IPv6 address are lost.
 */
export function canonicaliseSource(source: string): Result<string, 'not-a-source'> {
  const parts = /^([a-z]+|s3):\/\/(.*)$/is.exec(source)
  if (parts === null || /\p{Cc}/u.test(source)) return refuse('not-a-source')
  const [, scheme = '', rest = ''] = parts
  const canonical = canonicaliseRest(scheme.toLowerCase(), rest)
  return canonical === null ? refuse('not-a-source') : accept(canonical)
}

function canonicaliseRest(scheme: string, rest: string): string | null {
  switch (scheme) {
    case 'http':
    case 'https':
      return canonicaliseHttp(scheme, rest)
    case 'oras':
      return canonicaliseRegistry(rest)
    case 's3':
      return canonicaliseObject(rest)
    case 'file':
      return canonicaliseFile(rest)
    default:
      return null
  }
}

/** User, default port, and empty port, query and fragment go; nothing else is touched. */
function canonicaliseHttp(scheme: string, rest: string): string | null {
  const parts = /^([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/.exec(rest)
  const [, authority = '', path = '', query = '', fragment = ''] = parts ?? []
  const host = canonicaliseHost(scheme, authority.slice(authority.lastIndexOf('@') + 1))
  if (host === null) return null
  return `${scheme}://${host}${path}${query === '?' ? '' : query}${fragment === '#' ? '' : fragment}`
}

function canonicaliseHost(scheme: string, text: string): string | null {
  const parts = /^(?:\[([^[\]]+)\]|([^:[\]]+))(?::(\d*))?$/.exec(text)
  if (parts === null) return null
  const [, address, name = '', digits = ''] = parts
  const host = (address ?? name).toLowerCase()
  if (digits === '' || Number(digits) === DEFAULT_PORT[scheme]) return host
  return Number(digits) > 65535 ? null : `${host}:${Number(digits)}`
}

const IMAGE_IN_REGISTRY =
  /^([^/@]+)\/([a-z0-9._-]+(?:\/[a-z0-9._-]+)+)(?::[\w.-]+(?=@))?(:[\w.-]+|@sha256:[0-9a-f]{64})$/is

/** Host and repository in lower case; a tag as it is, none beside a digest, which is in lower case only. */
function canonicaliseRegistry(rest: string): string | null {
  const parts = IMAGE_IN_REGISTRY.exec(rest)
  if (parts === null) return null
  const [, host = '', repository = '', version = ''] = parts
  if (version.startsWith('@') && version !== version.toLowerCase()) return null
  return `oras://${host.toLowerCase()}/${repository.toLowerCase()}${version}`
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const MAX_KEY_BYTES = 1024

/**
 * The bucket in lower case; the key as it is, since no character of it means anything here. A key
 * with a part `.` or `..` is none that an address can name: clients and proxies resolve those.
 */
function canonicaliseObject(rest: string): string | null {
  const [, bucket = '', key = ''] = /^([^/]*)\/(.+)$/s.exec(rest) ?? []
  const isNamed = BUCKET.test(bucket.toLowerCase()) && key !== '' && key.isWellFormed()
  if (!isNamed || Buffer.byteLength(key) > MAX_KEY_BYTES) return null
  const isResolved = key.split('/').some((part) => part === '.' || part === '..')
  return isResolved ? null : `s3://${bucket.toLowerCase()}/${key}`
}

function canonicaliseFile(rest: string): string | null {
  const parts = rest.split('/').filter((part) => part !== '' && part !== '.')
  return parts.length === 0 || parts.includes('..') ? null : `file://${parts.join('/')}`
}
