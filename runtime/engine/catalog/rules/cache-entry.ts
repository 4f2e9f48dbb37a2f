/** Checks an image that an operator adds to the cache: its source and its name. */
import { z } from 'zod'
import { type CatalogFields, MAX_NAME_LENGTH, parseCatalogFields } from './catalog-fields.ts'
import { type FieldError, fieldError, parseFields } from '#kit/foundation/field-error.ts'
import { refOf } from './catalog.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** `src` never holds a password. */
export interface CacheEntry extends CatalogFields {
  /** `user:password`, for the source alone. */
  readonly credentials: string | null
}

/** Without credentials. */
export const sourceOf = ({ src, resolved_src }: CatalogFields): string => resolved_src ?? src

/** With credentials: never shown. */
export function secretSourceOf(entry: CacheEntry): string {
  const { credentials } = entry
  return credentials === null
    ? sourceOf(entry)
    : sourceOf(entry).replace(/^([a-z]+:\/\/)/i, `$1${credentials}@`)
}

export const publicFields = ({ credentials: _credentials, ...fields }: CacheEntry): CatalogFields =>
  fields

/** Entries are checked when they are made. */
export const keyOf = (entry: CatalogFields): string => blobKeyOf(sourceOf(entry)) ?? ''

/** One key for all spellings of an address. Null: no source. */
export function blobKeyOf(source: string): string | null {
  const ref = refOf(source)
  return ref.ok ? ref.value : null
}

const digest = z
  .string()
  .regex(/^\s*([0-9a-fA-F]{64})?\s*$/, 'must be 64 hexadecimal digits')
  .nullish()

const BODY = z.strictObject({
  name: z.string().max(MAX_NAME_LENGTH).nullish(),
  src: z.string().min(1).max(8192),
  resolved_src: z.string().max(8192).nullish(),
  format: z.string().max(32).nullish(),
  arch: z.string().max(32).nullish(),
  sha256: digest,
  index_sha256: digest,
  any_content: z.boolean().nullish(),
  size_bytes: z.int().min(0).nullish(),
  description: z.string().max(8192).nullish(),
  netboot_ref: z.string().max(MAX_NAME_LENGTH).nullish(),
})

/** Without a name one is made of the source. The refusal lists the wrong fields. */
export function parseCacheEntry(
  body: unknown,
  isTaken: (name: string) => boolean,
): Result<CacheEntry, readonly FieldError[]> {
  const checked = parseFields(BODY, body)
  if (!checked.ok) return checked
  const { src, resolved_src: resolved } = checked.value
  const main = splitUser(src.trim())
  const other = resolved ? splitUser(resolved.trim()) : null
  const wrong =
    findWrongSource('src', main.url) ??
    findWrongSource('resolved_src', other?.url) ??
    findLooseIndex(checked.value)
  if (wrong !== null) return refuse([wrong])
  const name = pickName(checked.value.name, main.url, isTaken)
  const given = { ...checked.value, name, src: main.url, resolved_src: other?.url }
  return toEntry(given, (other ?? main).user)
}

const pickName = (
  given: string | null | undefined,
  source: string,
  isTaken: (name: string) => boolean,
) => given?.trim() || freeName(nameOf(source), isTaken)

function toEntry(
  given: Readonly<Record<string, unknown>>,
  credentials: string | null,
): Result<CacheEntry, readonly FieldError[]> {
  const fields = parseCatalogFields(given, 0)
  return fields.ok
    ? accept({ ...fields.value, credentials })
    : refuse([fieldError([], fields.refusal.reason)])
}

export function freeName(wanted: string, isTaken: (name: string) => boolean): string {
  let name = wanted
  for (let count = 2; isTaken(name); count += 1) name = `${wanted}-${count}`
  return name
}

/** A URL's file name, a registry's `repository-tag`. */
function nameOf(source: string): string {
  const spelled = blobName(source)
  // The key of an object in a bucket has no escapes.
  const isPlain = /^s3:/i.test(source)
  const name = /^oras:/i.test(source)
    ? spelled.replace(/[:@]/, '-')
    : ((isPlain ? null : decodePart(spelled)) ?? spelled)
  return name.replaceAll(/[\p{Cc}/\\]/gu, '').slice(0, 255) || 'download'
}

function splitUser(url: string) {
  const [, scheme, user, rest] = /^([a-z]+:\/\/)([^/?#]*)@(.*)$/is.exec(url) ?? []
  return scheme === undefined
    ? { url, user: null }
    : { url: `${scheme}${rest}`, user: user ?? null }
}

/** An index is pinned only together with the digest of the file. */
const findLooseIndex = ({ sha256, index_sha256: index }: Pick<z.infer<typeof BODY>, DigestField>) =>
  index?.trim() && !sha256?.trim()
    ? fieldError(['index_sha256'], 'needs the SHA-256 of the file as well')
    : null

type DigestField = 'sha256' | 'index_sha256'

const NOT_A_SOURCE = 'must be an http://, https://, oras:// or s3:// address'

function findWrongSource(field: string, url: string | undefined): FieldError | null {
  if (url === undefined) return null
  if (/^file:/i.test(url)) {
    return fieldError([field], 'a file is added by dropping it into the folder of the cache')
  }
  const isUsable = /^(https?|oras|s3):\/\//i.test(url) && refOf(url).ok
  const isUrl = isUsable && (/^(oras|s3):/i.test(url) || URL.canParse(url))
  return isUrl ? null : fieldError([field], NOT_A_SOURCE)
}

// Builds and parses the address of a source's bytes at a cache service: `<base>/b/<token>/<name>`.

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
