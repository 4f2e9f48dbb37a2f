/** Parts of files over HTTP: which part a request gets, and whether an answer is the part that was asked for. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** A remote file as first seen; every later answer is held against it. */
export interface Representation {
  readonly sizeBytes: number | null
  /** What `If-Range` may carry: a strong ETag, else the modification date; null: neither is given. */
  readonly validator: string | null
  /** A weak ETag beside a date: `If-Range` may not carry it, but another one is another file. */
  readonly weakTag?: string
  /** Whether the server sends parts. */
  readonly ranges: boolean
  /** The address itself names the bytes, by their digest: parts fit together without a validator. */
  readonly isFixed?: boolean
  /** What the server says of the bytes; absent: nobody asked. */
  readonly sent?: Sent
  /** SHA-256 of all bytes, in lower case, as an image cache names it; absent: nobody does. */
  readonly sha256?: string
}

interface ContentRange {
  readonly from: number
  /** Exclusive, unlike on the wire. */
  readonly to: number
  readonly total: number | null
}

/** Parses `bytes 0-9/100` or `bytes 0-9/*`; null for anything else. */
export function parseContentRange(text: string): ContentRange | null {
  const match = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/i.exec(text.trim())
  if (match === null) return null
  const [from, last] = [Number(match[1]), Number(match[2])]
  const total = match[3] === '*' ? null : Number(match[3])
  const isSane = from <= last && Number.isSafeInteger(last) && (total === null || last < total)
  return isSane ? { from, to: last + 1, total } : null
}

/** Null where there is none or no number. */
export function parseLength(headers: Headers): number | null {
  const text = textOf(headers, 'content-length')
  const length = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(length) ? length : null
}

/**
 * Describes a file by a 200 answer to HEAD, which does not say whether the server sends parts. Some
 * servers count the body that a HEAD does not have, so a length of 0 says nothing.
 */
export function describeHead(headers: Headers): Representation {
  const whole = describeWhole(headers)
  return whole.sizeBytes === 0 ? { ...whole, sizeBytes: null } : whole
}

const describeWhole = (headers: Headers): Representation => ({
  sizeBytes: parseLength(headers),
  ...versionOf(headers),
  ranges: false,
  ...sentOf(headers),
  ...digestOf(headers),
})

function digestOf(headers: Headers): Pick<Representation, 'sha256'> {
  const digest = textOf(headers, 'x-withcache-sha256').toLowerCase()
  return /^[0-9a-f]{64}$/.test(digest) ? { sha256: digest } : {}
}

/** The answer to `Range: bytes=0-0`; null where it says nothing of the file. */
export function describeProbe(status: number, headers: Headers): Representation | null {
  const range = textOf(headers, 'content-range')
  const part = parseContentRange(range)
  // A part under the status of the whole: its length is not that of the file.
  if (status === 200 && part === null) return describeWhole(headers)
  const named = { ...digestOf(headers), ...sentOf(headers) }
  const described = { ...versionOf(headers), ...named }
  if (status === 416 && /^bytes \*\/0$/i.test(range)) {
    return { ...described, sizeBytes: 0, ranges: false }
  }
  if (status !== 206 && status !== 200) return null
  const ranges = status === 206 && isFirstByte(part)
  return { ...described, sizeBytes: part?.total ?? null, ranges }
}

const isFirstByte = (part: ContentRange | null) =>
  part !== null && part.from === 0 && part.to === 1 && part.total !== null

/** Nothing where the server says nothing. */
function sentOf(headers: Headers): Pick<Representation, 'sent'> {
  const sent = parseSent(headers)
  return sent.type === null && sent.coding === null ? {} : { sent }
}

/** What the GET said counts more than what the HEAD said. */
export function mergeRepresentations(
  head: Representation | null,
  probe: Representation | null,
): Representation | null {
  if (head === null || probe === null) return probe ?? head
  const sha256 = probe.sha256 ?? head.sha256
  const { weakTag } = probe
  return {
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(weakTag === undefined ? {} : { weakTag }),
    sizeBytes: probe.sizeBytes ?? head.sizeBytes,
    validator: probe.validator ?? head.validator,
    ranges: probe.ranges,
    ...(probe.sent === undefined ? {} : { sent: probe.sent }),
  }
}

/** Bytes `from` up to, without, `to` (null: to an unknown end); `ranged`: asked with a `Range`. */
export interface RangeRequest {
  readonly from: number
  readonly to: number | null
  readonly ranged: boolean
}

type Verdict =
  /** The body holds the bytes asked for, up to `to` (null: to wherever the body ends). */
  | { readonly kind: 'take'; readonly to: number | null }
  /** The same question may be answered later. */
  | { readonly kind: 'later' }
  | { readonly kind: 'never'; readonly reason: string; readonly changed: boolean }

const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])
export const isPassing = (status: number): boolean => PASSING.has(status)

export function judgeAnswer(
  asked: RangeRequest,
  known: Representation,
  { status, headers }: { readonly status: number; readonly headers: Headers },
): Verdict {
  if (isPassing(status)) return { kind: 'later' }
  if (status !== 200 && status !== 206) {
    const changed = status === 412 || status === 416
    return changed ? CHANGED : never(`the server answered HTTP ${status}`)
  }
  if (!isSameVersion(known, headers)) return CHANGED
  const coding = findCoding(known, headers)
  if (coding !== null) return never(renderCoding(coding))
  return status === 200 ? judgeWhole(asked, known, headers) : judgePart(asked, known, headers)
}

/** One that the file did not have when it was first seen; null: none. */
function findCoding({ isFixed = false, sent }: Representation, headers: Headers): string | null {
  const { coding } = parseSent(headers)
  // Where the address names the bytes by their digest, a coding can only be a label.
  return isFixed || coding === (sent?.coding ?? null) ? null : coding
}

function judgeWhole(asked: RangeRequest, known: Representation, headers: Headers): Verdict {
  if (parseContentRange(textOf(headers, 'content-range')) !== null) return PART_AS_WHOLE
  if (asked.ranged) return never('the server sent the whole file where a part was asked for')
  const length = parseLength(headers)
  if (known.sizeBytes !== null && length !== null && length !== known.sizeBytes) return CHANGED
  const to = known.sizeBytes ?? length
  // Without a length and without chunks a body ends where the connection does, cut or not.
  const isEndTold = to !== null || textOf(headers, 'transfer-encoding').includes('chunked')
  return isEndTold
    ? { kind: 'take', to }
    : never('the server gives neither the size nor the end of the file')
}

function judgePart(asked: RangeRequest, known: Representation, headers: Headers): Verdict {
  const part = parseContentRange(textOf(headers, 'content-range'))
  if (!asked.ranged || part === null || part.from !== asked.from) return OTHER_BYTES
  if (part.total !== null && part.total !== known.sizeBytes) return CHANGED
  if (asked.to === null || part.to > asked.to) return OTHER_BYTES
  const length = parseLength(headers)
  if (length !== null && length !== part.to - part.from) return OTHER_BYTES
  return { kind: 'take', to: part.to }
}

const never = (reason: string, changed = false): Verdict => ({ kind: 'never', reason, changed })
const PART_AS_WHOLE = never(
  'the server answered 200 with a Content-Range: it sends a part and calls it the whole file',
)
const CHANGED = never('the file on the server changed', true)
const OTHER_BYTES = never('the server sent other bytes than were asked for')

/** An answer that names no version is held against size and range alone. */
function isSameVersion({ validator, weakTag }: Representation, headers: Headers): boolean {
  if (validator === null) return true
  const isTag = validator.startsWith('"')
  const now = textOf(headers, isTag ? 'etag' : 'last-modified')
  const tag = isTag || weakTag === undefined ? '' : textOf(headers, 'etag')
  return (now === '' || now === validator) && (tag === '' || tag === weakTag)
}

/** Tells whether a server sent all of the known file, as it takes no ETag in `If-Range`. */
export const isDeafToTags = (
  { ranged }: RangeRequest,
  { validator }: Representation,
  { status, headers }: { readonly status: number; readonly headers: Headers },
): boolean =>
  ranged && status === 200 && validator?.startsWith('"') === true && headers['etag'] === validator

/** A weak ETag (`W/"…"`) promises no equal bytes, so it is no validator (RFC 9110, 13.1.5). */
function versionOf(headers: Headers): Pick<Representation, 'validator' | 'weakTag'> {
  const etag = textOf(headers, 'etag')
  if (/^"[\x21\x23-\x7e]{1,512}"$/.test(etag)) return { validator: etag }
  const date = textOf(headers, 'last-modified')
  const weak = /^W\/"[\x21\x23-\x7e]{1,512}"$/.test(etag) ? { weakTag: etag } : {}
  return { validator: /^[\w ,:]{20,40}$/.test(date) ? date : null, ...weak }
}

function textOf(headers: Headers, name: string): string {
  const value = headers[name]
  return typeof value === 'string' ? value : ''
}

// What a server says of the bytes that it sends: their type, and a coding that nobody asked for.

/** In lower case, without parameters. */
export interface Sent {
  readonly type: string | null
  /** Null: the bytes are the file's own. */
  readonly coding: string | null
}

type Header = string | readonly string[] | undefined

export function parseSent(
  headers: Readonly<{ 'content-type'?: Header; 'content-encoding'?: Header }>,
): Sent {
  const coding = firstWord(headers['content-encoding'])
  return { type: firstWord(headers['content-type']), coding: CODINGS.has(coding) ? coding : null }
}

/** Those that change bytes; some servers name others, which are mere labels. */
const CODINGS: ReadonlySet<string | null> = new Set([
  'gzip',
  'x-gzip',
  'deflate',
  'br',
  'zstd',
  'compress',
  'x-compress',
])

const firstWord = (header: Header): string | null => {
  const text = typeof header === 'string' ? header : header?.[0]
  return (
    text
      ?.split(/[;,]/, 1)[0]
      ?.trim()
      .toLowerCase()
      .replace(/[^\x21-\x7e]/g, '') || null
  )
}

const PAGES: readonly (string | null)[] = ['text/html', 'application/xhtml+xml']

/** Says why it is a web page, whatever it was asked for; null: the server does not say so. */
export const describeType = ({ type = null }: Partial<Sent> = {}): string | null =>
  PAGES.includes(type) ? `the server says that it is a web page (Content-Type: ${type})` : null

/** Tells whether bytes of this coding begin like any others, so that they do not show it. */
export const isUnmarked = ({ coding }: Sent): boolean =>
  coding !== null && !['gzip', 'x-gzip', 'zstd'].includes(coding)

/** Renders a clause that stands behind what the bytes are instead. */
export const renderCoding = (coding: string): string =>
  `the server sent it encoded (Content-Encoding: ${coding}), though it was asked not to`

interface FileToOpen {
  /** Null: it is not known. */
  readonly sizeBytes: number | null
}

const WORDS: Readonly<Record<number, string>> = {
  401: 'it requires a login',
  403: 'it requires a login',
  404: 'it does not have this data',
  410: 'it no longer has this data',
  429: 'it limits requests',
}

/** A clause, by the answer to a GET of byte 0; null: nothing speaks against it. */
export function findObstacle(
  status: number,
  headers: Headers,
  { sizeBytes }: FileToOpen,
): string | null {
  if (status !== 200 && status !== 206) return WORDS[status] ?? `it answers HTTP ${status}`
  const found = describeProbe(status, headers)
  if (found?.ranges !== true) return 'it has no byte ranges'
  return findOtherSize(found.sizeBytes, sizeBytes)
}

/** Says that a file has another size than the one that was ordered; null: it may be that one. */
export const findOtherSize = (found: number | null, wanted: number | null): string | null =>
  wanted === null || found === wanted ? null : `it has ${found} bytes there, not ${wanted}`

export interface Conditions {
  readonly range: string | null
  readonly ifRange: string | null
  readonly ifNoneMatch: string | null
  readonly ifModifiedSince: string | null
}

interface Version {
  readonly sizeBytes: number
  readonly etag: string
  /** As in `Last-Modified`, which clients send back as they got it; null: no time is known. */
  readonly lastModified: string | null
}

type FileAnswer =
  | { readonly status: 200 }
  /** The part from one byte to the other, both included. */
  | { readonly status: 206; readonly from: number; readonly to: number }
  | { readonly status: 304 }
  | { readonly status: 416 }

/** Several ranges, and what is no range, get the whole file. */
export function decideFileAnswer(asked: Conditions, version: Version): FileAnswer {
  if (isKnown(asked, version)) return { status: 304 }
  if (asked.range === null || !isForVersion(asked.ifRange, version)) return { status: 200 }
  return parseRange(asked.range, version.sizeBytes)
}

function isKnown({ ifNoneMatch, ifModifiedSince }: Conditions, version: Version): boolean {
  if (ifNoneMatch !== null) {
    return ifNoneMatch.split(',').some((tag) => ['*', version.etag].includes(bare(tag)))
  }
  return ifModifiedSince !== null && ifModifiedSince.trim() === version.lastModified
}

/** A weak tag never proves that two byte strings are the same. */
function isForVersion(ifRange: string | null, version: Version): boolean {
  if (ifRange === null) return true
  return [version.etag, version.lastModified].includes(ifRange.trim())
}

/** One range; several, or anything else, and the whole file is sent, as the RFC allows. */
function parseRange(header: string, size: number): FileAnswer {
  const match = /^\s*bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(header)
  const [, first = '', last = ''] = match ?? []
  if (first === '') return last === '' ? { status: 200 } : cutTail(Number(last), size)
  const [from, to] = [Number(first), last === '' ? Infinity : Number(last)]
  if (to < from) return { status: 200 }
  return from >= size ? { status: 416 } : { status: 206, from, to: Math.min(size - 1, to) }
}

const cutTail = (length: number, size: number): FileAnswer =>
  length === 0 || size === 0
    ? { status: 416 }
    : { status: 206, from: Math.max(0, size - length), to: size - 1 }

const bare = (tag: string) => tag.trim().replace(/^W\//, '')
