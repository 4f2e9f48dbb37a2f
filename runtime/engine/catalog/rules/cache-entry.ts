/** What the cache service holds: its entries, their addresses, uploads and files of its folder. */
import { z } from 'zod'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { detectFormat, isTarballName } from '#engine/image/rules/format.ts'
import { type FieldError, fieldError, parseFields } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { refOf } from './catalog.ts'

const MAX_NAME_LENGTH = 512
const MAX_TEXT_LENGTH = 8192

const textField = (maxLength: number, words: string) =>
  z
    .string(words)
    .max(maxLength, words)
    .regex(/\S/, words)
    .transform((given) => given.toWellFormed())

/** It decides which bytes are written: an invalid value refuses the whole entry. */
const decisive = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((given) => (given === '' ? null : (given ?? null)), schema.nullable())

/** An invalid value is dropped. */
const descriptive = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().catch(null)

/** `img.gz`, `x86_64`: they end up in command lines and file names. */
const identifier = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9][a-z0-9._+-]{0,31}$/)

const NO_DIGEST = 'sha256 is not 64 hexadecimal digits'
const NameSchema = textField(MAX_NAME_LENGTH, `has no name of 1 to ${MAX_NAME_LENGTH} characters`)

/** `""` and null mean absent. */
const FieldsSchema = z.object(
  {
    name: NameSchema,
    src: textField(MAX_TEXT_LENGTH, 'has no source (src)'),
    resolved_src: decisive(textField(MAX_TEXT_LENGTH, 'resolved_src is not an address')),
    format: descriptive(identifier),
    arch: descriptive(identifier),
    /** Lower case. */
    sha256: decisive(
      z
        .string(NO_DIGEST)
        .trim()
        .toLowerCase()
        .regex(/^[0-9a-f]{64}$/, NO_DIGEST),
    ),
    /** Of an image in frames; with an invalid one the whole image is read instead. */
    index_sha256: z
      .string()
      .trim()
      .toLowerCase()
      .regex(/^[0-9a-f]{64}$/)
      .nullish()
      .catch(null),
    /** The operator says that it is an image, whatever it looks like. */
    any_content: z.boolean().nullish().catch(null),
    size_bytes: descriptive(z.int().min(0)),
    raw_size_bytes: z.int().min(0).nullish().catch(null),
    raw_sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .nullish()
      .catch(null),
    /** ISO time when the cache got it. */
    added_at: z.iso.datetime({ offset: true }).nullish().catch(null),
    description: descriptive(textField(MAX_TEXT_LENGTH, '')),
    netboot_ref: descriptive(NameSchema),
  },
  'is not a table of fields',
)

export type CatalogFields = Readonly<z.infer<typeof FieldsSchema>>

/** The refusal names the entry, and says why. */
export function parseCatalogFields(
  entry: unknown,
  index: number,
): Result<CatalogFields, { readonly name: string; readonly reason: string }> {
  const fields = FieldsSchema.safeParse(entry)
  if (fields.success) return accept(fields.data)
  const name = NameSchema.safeParse(Object(entry).name).data ?? `entry ${index + 1}`
  return refuse({ name, reason: fields.error.issues[0]?.message ?? '' })
}

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

const digestParameter = z
  .string()
  .regex(/^\s*([0-9a-fA-F]{64})?\s*$/, 'must be 64 hexadecimal digits')
  .nullish()

const BODY = z.strictObject({
  name: z.string().max(MAX_NAME_LENGTH).nullish(),
  src: z.string().min(1).max(8192),
  resolved_src: z.string().max(8192).nullish(),
  format: z.string().max(32).nullish(),
  arch: z.string().max(32).nullish(),
  sha256: digestParameter,
  index_sha256: digestParameter,
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
    return fieldError([field], 'to add a file, copy it into the folder of the cache')
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

const isLoopback = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(host)

export type UploadRequest = Readonly<z.infer<typeof UploadSchema>>

/** 64 TiB: larger than any disk that is flashed. */
export const MAX_UPLOAD_BYTES = 2 ** 46
/** Sent at a time by the upload page; the beginning of a part that is cut off is kept. */
export const MAX_PART_BYTES = 8 * 2 ** 20
/** What file systems take. */
const MAX_NAME_BYTES = 255

export const ImageNameSchema = z.string().superRefine((name, context) => {
  const message = whyNoName(name)
  if (message !== null) context.addIssue({ code: 'custom', message })
})

export const UploadSchema = z.strictObject({
  name: ImageNameSchema,
  size_bytes: z.int().min(1, 'must not be empty').max(MAX_UPLOAD_BYTES),
  sha256: z
    .string()
    .trim()
    .toLowerCase()
    .regex(/^([0-9a-f]{64})?$/, 'must be 64 hexadecimal digits')
    .nullish()
    .transform((digest) => digest || null),
  /** Of the client's file, such as its time: parts of two versions are never joined. */
  version: z
    .string()
    .max(100)
    .nullish()
    .transform((version) => version ?? null),
})

function whyNoName(name: string): string | null {
  if (/^\.|[/\\]/.test(name)) return 'must be a file name without folders or a leading dot'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    return `must be at most ${MAX_NAME_BYTES} bytes long`
  if (/\p{Bidi_Control}/u.test(name)) return 'must not contain characters that reverse text'
  const reason = whyNotAnImage(name)
  return reason === '' ? `must end in ${ENDINGS}` : reason
}

const ENDINGS = IMAGE_FORMATS.map((format) => `.${format}`)
  .toSorted()
  .join(', ')
  .replace(/, (?=[^,]*$)/, ' or ')

/** Another size, time or inode is another version. */
export const FileStampSchema = z.object({
  name: z.string(),
  sizeBytes: z.number(),
  /** Nanoseconds since the epoch, in decimal. */
  mtimeNs: z.string(),
  ino: z.string(),
})
export type FileStamp = Readonly<z.infer<typeof FileStampSchema>>

export const isSameStamp = (a: FileStamp, b: FileStamp): boolean =>
  a.name === b.name && a.sizeBytes === b.sizeBytes && a.mtimeNs === b.mtimeNs && a.ino === b.ino

/** A clause; null: an image by its name; empty: it does not look like one. */
export function whyNotAnImage(name: string): string | null {
  if (/[\p{Cc}\p{Cs}\ufffd]/u.test(name))
    return 'its name has characters that an address cannot have'
  if (detectFormat(name) !== null) return null
  return isTarballName(name) ? 'a tarball cannot be flashed: extract it first' : ''
}

/** `file:///<name>`; escapes what would end a path, or is an escape. */
export const fileSource = (name: string): string =>
  `file:///${name.replaceAll(/[%?#\\]/g, encodeURIComponent)}`

/** Null: no `file:///<name>`. */
export function parseFileSource(source: string): string | null {
  const [, spelled] = /^file:\/\/\/([^/]+)$/i.exec(source) ?? []
  return spelled === undefined ? null : decodePart(spelled)
}

export const fileUrl = (base: string, name: string): string =>
  `${base}/files/${encodeURIComponent(name)}`

/** In `…/files/<name>` on `ownHost` (with port) or on this machine; null: another address. */
export function parseFileUrl(source: string, ownHost: string): string | null {
  const url = /^https?:/i.test(source) ? URL.parse(source) : null
  if (url === null) return null
  const isOwn = url.host === ownHost.toLowerCase() || isLoopback(url.hostname)
  const [, spelled] = /^\/files\/([^/]+)$/.exec(url.pathname) ?? []
  return isOwn && spelled !== undefined ? decodePart(spelled) : null
}

// A machine of which an image was ordered, with its labels: they decide who sees that image at the cache.

export interface CapturedMachine {
  readonly mac: string
  readonly labels: readonly string[]
}

export const MAX_CAPTURED = 2000

/** A machine that an image is assigned to. */
export interface ImageUser {
  readonly ref: string
  readonly mac: string
  readonly name: string
}

/** A question about an image names so many of its machines. */
export const MAX_NAMED_USERS = 10
export const MAX_USERS = 1000

interface KeptVersion {
  readonly sha256: string
  readonly sizeBytes: number
  /** An ETag, a date, or a digest; null or absent: none. */
  readonly version?: string | null | undefined
}

interface FoundVersion {
  /** Absent: the source names none. */
  readonly sha256?: string | undefined
  readonly servedSha256?: string | undefined
  readonly version?: string | null | undefined
  readonly sizeBytes: number | null
}

/** By the best mark that both sides have; without one nothing is known to have changed. */
export function hasMovedOn(kept: KeptVersion, found: FoundVersion): boolean {
  const digest = found.sha256 ?? found.servedSha256
  if (digest !== undefined) return digest !== kept.sha256
  if (found.sizeBytes !== null && found.sizeBytes !== kept.sizeBytes) return true
  const [before, now] = [kept.version ?? null, found.version ?? null]
  // An ETag and a date cannot be compared: a server may begin or cease to send one.
  return before !== null && now !== null && isTag(before) === isTag(now) && before !== now
}

const isTag = (version: string): boolean => /^(?:W\/)?"/.test(version)

/** With a wrong clock the future counts as now, so that no wait exceeds one interval. */
export const ageOf = (lastMs: number, nowMs: number): number => Math.max(0, nowMs - lastMs)

/** ISO 8601; null: not moved on. `hasMoved` null: the look showed nothing, and `before` stays. */
export function decideMovedAt(
  before: string | null,
  hasMoved: boolean | null,
  lookedAt: string,
): string | null {
  if (hasMoved === null) return before
  return hasMoved ? (before ?? lookedAt) : null
}
