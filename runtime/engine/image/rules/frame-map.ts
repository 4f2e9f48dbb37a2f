/** Where each frame of a zstd image lies and what it holds, by its index (docs/image-format.md) or a seek table. */
import { createHash } from 'node:crypto'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { readSeekEntry, type SeekFooter } from './zstd.ts'

/** In bytes; `stored…` in the file, others in the image. */
export interface Frame {
  readonly index: number
  readonly offset: number
  readonly bytes: number
  readonly storedAt: number
  readonly storedBytes: number
  readonly isZero: boolean
  /** Hexadecimal; null: only a seek table is known. */
  readonly sha256: string | null
}

export interface FrameMap {
  readonly count: number
  readonly bytes: number
  readonly maxBytes: number
  readonly maxStoredBytes: number
  /** Of the image; null: only a seek table is known, or nobody computed it. */
  readonly sha256: string | null
  /** Of the index's body; null: only a seek table is known. */
  readonly indexSha256: string | null
  at(index: number): Frame
}

export function describeFrames(map: FrameMap) {
  const { count, sha256, indexSha256 } = map
  if (indexSha256 === null) return { count }
  let zeroCount = 0
  for (let index = 0; index < count; index += 1) zeroCount += map.at(index).isZero ? 1 : 0
  const digest = sha256 === null ? {} : { image_sha256: sha256 }
  return { count, zero_count: zeroCount, ...digest, index_sha256: indexSha256 }
}

interface ImagePins {
  /** Of the stored file; null: unknown. */
  readonly sha256: string | null
  /** Of the body of its index; null: unknown. */
  readonly indexSha256: string | null
}

/**
 * Null: read from start to end. A file's digest needs all of it, so that an image with one is
 * entered only by an index with a digest of its own. Refused with a clause behind its name.
 */
export function decideEntry(
  map: FrameMap | null,
  { sha256, indexSha256 }: ImagePins,
): Result<FrameMap | null, string> {
  if (indexSha256 !== null) {
    if (map !== null && map.indexSha256 === indexSha256) return accept(map)
    const found = map?.indexSha256 ?? null
    return refuse(
      found === null
        ? 'has no index, but one was expected'
        : `has another index than the one asked for: its sha256 is ${found}, not ${indexSha256}`,
    )
  }
  return accept(sha256 === null ? map : null)
}

/**
 * Null: an index's digest from the image's own source does not count. A false source could promise
 * another image's index: it counts only where the promise has a digest of its own.
 */
export const decidePromisedIndex = ({
  isDigestKnown,
  indexSha256,
  isPinned = false,
}: {
  /** Who asked for the image named it, or it lies beside the image. */
  readonly isDigestKnown: boolean
  readonly indexSha256?: string
  /** The promise was named by its digest. */
  readonly isPinned?: boolean
}): string | null =>
  indexSha256 !== undefined && (!isDigestKnown || isPinned) ? indexSha256 : null

/** What one source of an image gave, where the image has several. */
export interface SourceShare {
  readonly name: string
  readonly bytes: number
  /** Why it was left; null: it was not. */
  readonly trouble: string | null
}

/** Of each frame but the last. */
export const FRAME_BYTES = 4 * 1024 * 1024
/** 4 TiB: a larger index would take too much memory. */
export const MAX_FRAMES = 2 ** 20
export const MAX_IMAGE_BYTES: number = FRAME_BYTES * MAX_FRAMES
/** zstd adds little to what it cannot compress. */
export const MAX_STORED_BYTES = FRAME_BYTES + 64 * 1024
const INDEX_HEAD_BYTES = 64
export const SKIPPABLE_HEAD_BYTES = 8

const SKIPPABLE_MAGIC = 0x184d2a5d
const MAGIC = Buffer.from('flashidx', 'latin1')
const VERSION = 1
const ENTRY_BYTES = 40
const ZERO_FLAG = 1

export interface IndexEntry {
  readonly storedBytes: number
  readonly isZero: boolean
  /** 32 bytes. */
  readonly sha256: Buffer
}

export interface IndexContent {
  readonly imageBytes: number
  /** 32 bytes; null: not computed. */
  readonly imageSha256: Buffer | null
  readonly entries: readonly IndexEntry[]
}

export type IndexRefusal =
  | { readonly why: 'no-index' }
  | { readonly why: 'other-version'; readonly version: number }
  | { readonly why: 'too-large' }
  | { readonly why: 'bad-header' }
  | { readonly why: 'bad-frame'; readonly index: number }
  /** The frames do not fill the file up to the index. */
  | { readonly why: 'not-covering' }
  | { readonly why: 'table-disagrees' }

/** For the digest of an image that nobody computed; no known image has it. */
const NOT_COMPUTED = Buffer.alloc(32)

export function encodeFrameIndex({ imageBytes, imageSha256, entries }: IndexContent): Buffer {
  const body = Buffer.alloc(INDEX_HEAD_BYTES + entries.length * ENTRY_BYTES)
  MAGIC.copy(body)
  body.writeUInt16LE(VERSION, 8)
  body.writeUInt32LE(FRAME_BYTES, 12)
  body.writeBigUInt64LE(BigInt(imageBytes), 16)
  body.writeUInt32LE(entries.length, 24)
  ;(imageSha256 ?? NOT_COMPUTED).copy(body, 32)
  entries.forEach(({ storedBytes, isZero, sha256 }, index) => {
    const at = INDEX_HEAD_BYTES + index * ENTRY_BYTES
    body.writeUInt32LE(storedBytes, at)
    body.writeUInt32LE(isZero ? ZERO_FLAG : 0, at + 4)
    sha256.copy(body, at + 8)
  })
  const head = Buffer.alloc(SKIPPABLE_HEAD_BYTES)
  head.writeUInt32LE(SKIPPABLE_MAGIC, 0)
  head.writeUInt32LE(body.length, 4)
  return Buffer.concat([head, body])
}

/** Of whatever version; by the first 16 bytes. */
export const isIndexStart = (bytes: Buffer): boolean =>
  bytes.length >= SKIPPABLE_HEAD_BYTES + MAGIC.length &&
  bytes.readUInt32LE(0) === SKIPPABLE_MAGIC &&
  bytes.subarray(SKIPPABLE_HEAD_BYTES, SKIPPABLE_HEAD_BYTES + MAGIC.length).equals(MAGIC)

export const MAX_INDEX_BYTES = SKIPPABLE_HEAD_BYTES + INDEX_HEAD_BYTES + MAX_FRAMES * ENTRY_BYTES

/** `frame`: whole, and kept; `storedAt`: its place in the file, where the frames must end. */
export function parseFrameIndex(frame: Buffer, storedAt: number): Result<FrameMap, IndexRefusal> {
  if (!isIndexStart(frame)) return refuse({ why: 'no-index' })
  const body = frame.subarray(SKIPPABLE_HEAD_BYTES)
  if (frame.readUInt32LE(4) !== body.length || body.length < INDEX_HEAD_BYTES) {
    return refuse({ why: 'bad-header' })
  }
  const head = parseHead(body)
  if (!head.ok) return head
  const layout = layOut(body, head.value)
  if (!layout.ok) return layout
  const { storedEnd } = layout.value
  return storedEnd === storedAt
    ? accept(createMap(body, head.value, layout.value))
    : refuse({ why: 'not-covering' })
}

interface Head {
  readonly imageBytes: number
  readonly count: number
}

function parseHead(body: Buffer): Result<Head, IndexRefusal> {
  const version = body.readUInt16LE(8)
  if (version !== VERSION) return refuse({ why: 'other-version', version })
  const imageBytes = body.readBigUInt64LE(16)
  const count = body.readUInt32LE(24)
  if (imageBytes > BigInt(MAX_FRAMES) * BigInt(FRAME_BYTES)) return refuse({ why: 'too-large' })
  const isRight =
    body.readUInt16LE(10) === 0 &&
    body.readUInt32LE(12) === FRAME_BYTES &&
    body.readUInt32LE(28) === 0 &&
    count === Math.ceil(Number(imageBytes) / FRAME_BYTES) &&
    body.length === INDEX_HEAD_BYTES + count * ENTRY_BYTES
  return isRight ? accept({ imageBytes: Number(imageBytes), count }) : refuse({ why: 'bad-header' })
}

interface Layout {
  readonly starts: Float64Array
  readonly storedEnd: number
  readonly maxStoredBytes: number
}

function layOut(body: Buffer, head: Head): Result<Layout, IndexRefusal> {
  const starts = new Float64Array(head.count)
  let storedEnd = 0
  let maxStoredBytes = 0
  for (let index = 0; index < head.count; index += 1) {
    const storedBytes = body.readUInt32LE(entryAt(index))
    if (storedBytes === 0 || storedBytes > MAX_STORED_BYTES || !isSound(body, head, index)) {
      return refuse({ why: 'bad-frame', index })
    }
    starts[index] = storedEnd
    storedEnd += storedBytes
    maxStoredBytes = Math.max(maxStoredBytes, storedBytes)
  }
  return accept({ starts, storedEnd, maxStoredBytes })
}

/** Marked as zeros exactly where the digest is that of so many zeros. */
function isSound(body: Buffer, head: Head, index: number): boolean {
  const at = entryAt(index)
  const flags = body.readUInt32LE(at + 4)
  const digest = digestOfZeros(sumContent(head, index))
  const isZero = body.compare(digest, 0, digest.length, at + 8, at + ENTRY_BYTES) === 0
  return flags === (isZero ? ZERO_FLAG : 0)
}

function createMap(body: Buffer, head: Head, { starts, maxStoredBytes }: Layout): FrameMap {
  const { imageBytes, count } = head
  const isComputed = body.compare(NOT_COMPUTED, 0, 32, 32, INDEX_HEAD_BYTES) !== 0
  return {
    count,
    bytes: imageBytes,
    maxBytes: Math.min(FRAME_BYTES, imageBytes),
    maxStoredBytes,
    sha256: isComputed ? body.toString('hex', 32, INDEX_HEAD_BYTES) : null,
    indexSha256: createHash('sha256').update(body).digest('hex'),
    at(index) {
      const at = entryAt(index)
      return {
        index,
        offset: index * FRAME_BYTES,
        bytes: sumContent(head, index),
        storedAt: starts[index] ?? 0,
        storedBytes: body.readUInt32LE(at),
        isZero: (body.readUInt32LE(at + 4) & ZERO_FLAG) !== 0,
        sha256: body.toString('hex', at + 8, at + ENTRY_BYTES),
      }
    },
  }
}

const entryAt = (index: number) => INDEX_HEAD_BYTES + index * ENTRY_BYTES
const sumContent = ({ imageBytes }: Head, index: number) =>
  Math.min(FRAME_BYTES, imageBytes - index * FRAME_BYTES)

const zeroDigests = { bytes: [-1, -1], digests: [Buffer.alloc(0), Buffer.alloc(0)] }
/** Remembered: the caller must not change it. */
export function digestOfZeros(bytes: number): Buffer {
  const slot = bytes === FRAME_BYTES ? 0 : 1
  const known = zeroDigests.bytes[slot] === bytes ? zeroDigests.digests[slot] : undefined
  if (known !== undefined) return known
  const digest = createHash('sha256').update(Buffer.alloc(bytes)).digest()
  zeroDigests.bytes[slot] = bytes
  zeroDigests.digests[slot] = digest
  return digest
}

const MESSAGES: Cases<'why', IndexRefusal, string> = {
  'no-index': () => 'it has no index',
  'other-version': ({ version }) => `its index is of version ${version}, which is not known`,
  'too-large': () => `its index claims more than ${(MAX_FRAMES * FRAME_BYTES) / 2 ** 40} TiB`,
  'bad-header': () => 'its index contradicts itself',
  'bad-frame': ({ index }) => `the entry of frame ${index} in its index is wrong`,
  'not-covering': () => 'the frames of its index do not fill the file',
  'table-disagrees': () => 'its index and its seek table contradict each other',
}

/** A clause behind the image's name. */
export const renderIndexRefusal = (refusal: IndexRefusal): string =>
  decideCase(MESSAGES, 'why', refusal)

/** Frames are decoded in memory: larger ones are better read as a stream. */
const MAX_CONTENT_BYTES = 16 * 1024 * 1024
/** Also smaller ones on average, as each is a read of its own. */
const MIN_MEAN_BYTES = 128 * 1024

/**
 * `table`: taken by `parseSeekTable`, and covering the file. Null: too many frames, or sizes that
 * make entering them useless.
 */
export function createTableMap(table: Buffer, footer: SeekFooter): FrameMap | null {
  const sums = sumUp(table, footer)
  const { count, bytes, maxBytes, maxStoredBytes } = sums
  const isWorthwhile =
    count > 1 &&
    count <= MAX_FRAMES &&
    Math.max(maxBytes, maxStoredBytes) <= MAX_CONTENT_BYTES &&
    bytes / count >= MIN_MEAN_BYTES
  if (!isWorthwhile) return null
  const { entries, offsets, storedAt } = listFrames(table, footer, count)
  return {
    ...sums,
    sha256: null,
    indexSha256: null,
    at(index) {
      const { storedBytes, contentBytes } = readSeekEntry(table, footer, entries[index] ?? 0)
      return {
        index,
        offset: offsets[index] ?? 0,
        bytes: contentBytes,
        storedAt: storedAt[index] ?? 0,
        storedBytes,
        isZero: false,
        sha256: null,
      }
    },
  }
}

function sumUp(table: Buffer, footer: SeekFooter) {
  const sums = { count: 0, bytes: 0, maxBytes: 0, maxStoredBytes: 0 }
  for (let entry = 0; entry < footer.frames; entry += 1) {
    const { storedBytes, contentBytes } = readSeekEntry(table, footer, entry)
    if (contentBytes === 0) continue
    sums.count += 1
    sums.bytes += contentBytes
    sums.maxBytes = Math.max(sums.maxBytes, contentBytes)
    sums.maxStoredBytes = Math.max(sums.maxStoredBytes, storedBytes)
  }
  return sums
}

function listFrames(table: Buffer, footer: SeekFooter, count: number) {
  const entries = new Uint32Array(count)
  const [offsets, storedAt] = [new Float64Array(count), new Float64Array(count)]
  let [index, offset, stored] = [0, 0, 0]
  for (let entry = 0; entry < footer.frames; entry += 1) {
    const { storedBytes, contentBytes } = readSeekEntry(table, footer, entry)
    if (contentBytes > 0) {
      entries[index] = entry
      offsets[index] = offset
      storedAt[index] = stored
      index += 1
    }
    offset += contentBytes
    stored += storedBytes
  }
  return { entries, offsets, storedAt }
}
