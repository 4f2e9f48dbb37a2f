/** Parses the location of an image as a person types it, and decides where a redirect from it leads. */
import { isOrasUrl, type OrasRef, parseOrasRef, renderOrasRef } from '../registry/rules/oras.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** An address without its credentials, and what opens it; the two are never put together again. */
export interface HttpTarget {
  readonly url: string
  /** The value of an `Authorization` header. */
  readonly authorization: string | null
}

export type Location =
  | { readonly kind: 'stdin' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'http'; readonly target: HttpTarget }
  | { readonly kind: 'oras'; readonly ref: OrasRef }
  /** The canonical spelling, `s3://bucket/key`. */
  | { readonly kind: 's3'; readonly source: string }

export type LocationRefusal =
  | { readonly why: 'empty' }
  | { readonly why: 'not-a-url'; readonly shown: string }
  | { readonly why: 'not-a-reference'; readonly shown: string; readonly words: string }
  | { readonly why: 'not-an-object'; readonly shown: string }
  | { readonly why: 'scheme-unsupported'; readonly scheme: string; readonly shown: string }

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i

/** A refusal shows no credentials. A path that looks like a URL can have `./` in front. */
export function parseLocation(text: string): Result<Location, LocationRefusal> {
  if (text === '') return refuse({ why: 'empty' })
  if (text === '-') return accept({ kind: 'stdin' })
  const scheme = SCHEME.exec(text)?.[1]?.toLowerCase()
  if (scheme === undefined) return accept({ kind: 'file', path: text })
  if (isOrasUrl(text)) return parseReference(text)
  const shown = hideUserInfo(text)
  if (scheme === 's3') return parseObject(text, shown)
  return parseHttp(text, scheme, shown)
}

function parseHttp(text: string, scheme: string, shown: string): Result<Location, LocationRefusal> {
  if (scheme !== 'http' && scheme !== 'https') {
    return refuse({ why: 'scheme-unsupported', scheme, shown })
  }
  const url = URL.parse(text)
  if (url === null) return refuse({ why: 'not-a-url', shown })
  return accept({ kind: 'http', target: splitCredentials(url) })
}

export function parseHttpTarget(text: string): HttpTarget | null {
  const location = parseLocation(text)
  return location.ok && location.value.kind === 'http' ? location.value.target : null
}

export function renderLocationRefusal(refusal: LocationRefusal): string {
  switch (refusal.why) {
    case 'empty':
      return 'no image is named'
    case 'not-a-url':
      return `not a valid URL: ${refusal.shown}`
    case 'scheme-unsupported':
      return `${refusal.scheme}:// images are not supported: ${refusal.shown} (a path, -, http://, https://, oras:// or s3:// are)`
    case 'not-an-object':
      return `not an object of a bucket, s3://bucket/key: ${refusal.shown}`
    case 'not-a-reference':
      return `${refusal.words}: ${refusal.shown}`
  }
}

const SECRET_NAME =
  /(^|[-_])(auth|key|password|pass|secret|sig|signature|token|credential)s?($|[-_])|(access|api)key/i

/** No user, no password, no fragment, no signature or token in the query. */
export function renderSafeUrl(href: string): string {
  const url = URL.parse(href)
  if (url === null) return hideUserInfo(href)
  const bare = `${url.protocol}//${url.host}${url.pathname}`
  const query = url.search.slice(1).split('&').map(maskSecret).join('&')
  return query === '' ? bare : `${bare}?${query}`
}

/** Such an address is good for GET alone, and for a while. */
export const isPresigned = (url: string): boolean => /[?&]X-Amz-Signature=/i.test(url)

/** Renders whose server an address names, without its path: `http://10.0.0.5:8081`. */
export function renderHost(address: string): string {
  const location = parseLocation(address)
  if (!location.ok) return hideUserInfo(address)
  const { value } = location
  if (value.kind === 'oras') return `oras://${value.ref.host}`
  if (value.kind === 's3') return value.source.replace(/^(s3:\/\/[^/]*).*$/s, '$1')
  return value.kind === 'http' ? new URL(value.target.url).origin : fileNameOf(value)
}

/** Decoded: the last part of a path or reference; empty: none; `-` for standard input. */
export function fileNameOf(location: Location): string {
  if (location.kind === 'stdin') return '-'
  if (location.kind === 'oras') return lastPart(renderOrasRef(location.ref))
  if (location.kind === 's3') return lastPart(location.source)
  if (location.kind === 'file') return lastPart(location.path)
  const encoded = lastPart(new URL(location.target.url).pathname)
  // A second look: `%2F` and control characters come out of the decoding.
  return lastPart(decode(encoded)).replaceAll(/\p{Cc}/gu, '')
}

/** In the spelling of catalogs, so that a reference from one finds its image. */
function parseReference(text: string): Result<Location, LocationRefusal> {
  const canonical = canonicaliseSource(text)
  const ref = parseOrasRef(canonical.ok ? canonical.value : text)
  if (ref.ok) return accept({ kind: 'oras', ref: ref.value })
  // A digest is written behind an @, too: only in front of the first / can it be a password.
  const shown = text.replace(/^(oras:\/\/)[^/]*@/i, '$1')
  return refuse({ why: 'not-a-reference', shown, words: ref.refusal })
}

function parseObject(text: string, shown: string): Result<Location, LocationRefusal> {
  const source = canonicaliseSource(text)
  return source.ok
    ? accept({ kind: 's3', source: source.value })
    : refuse({ why: 'not-an-object', shown })
}

const lastPart = (path: string) => path.split('/').findLast(Boolean) ?? ''

/** Decodes a part of a URL; null: it is no spelling of anything. */
export function decodePart(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** A stray percent sign: the text is what it is. */
const decode = (text: string) => decodePart(text) ?? text

function splitCredentials(url: URL): HttpTarget {
  const pair = `${decode(url.username)}:${decode(url.password)}`
  const authorization = pair === ':' ? null : `Basic ${Buffer.from(pair).toString('base64')}`
  const bare = new URL(url)
  bare.username = ''
  bare.password = ''
  bare.hash = ''
  return { url: bare.href, authorization }
}

function maskSecret(pair: string): string {
  const [name = ''] = pair.split('=', 1)
  return SECRET_NAME.test(decode(name)) && pair.includes('=') ? `${name}=***` : pair
}

/** For what is no URL: rather too little is shown than a password. */
const hideUserInfo = (text: string) => text.replace(/^([a-z][a-z0-9+.-]*:\/\/).*@/is, '$1')

/** The one spelling of an image's source, which its identity is made of. */
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
