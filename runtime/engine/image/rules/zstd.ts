/** The zstd file format (RFC 8878): headers of frames and blocks, a walk over a stream, the seek table, the decoded size. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  atLeast,
  known,
  type RangeStep,
  reading,
  refused,
  UNKNOWN_SIZE,
  type VirtualSize,
} from './image.ts'

type ZstdProblem =
  | { readonly why: 'cut-off' }
  | { readonly why: 'not-a-frame' }
  /** zstd 0.1 to 0.7, which no decoder of today reads by default. */
  | { readonly why: 'legacy'; readonly version: string }
  | { readonly why: 'dictionary'; readonly id: number }
  | { readonly why: 'reserved-bit' }
  /** Beyond what a number counts exactly: 8 PiB. */
  | { readonly why: 'content-too-large' }

/** `at`: offset in the file; with `cut-off`, where the file ends. */
type ZstdRefusal = { readonly at: number } & (
  | ZstdProblem
  | { readonly why: 'garbage-after-frame' }
  | { readonly why: 'bad-block' }
  | { readonly why: 'no-frame' }
)

type FrameHeader =
  | { readonly kind: 'skippable'; readonly headerBytes: 8; readonly bodyBytes: number }
  | {
      readonly kind: 'frame'
      readonly headerBytes: number
      /** Null: the compressor did not know it (a pipe, pzstd). */
      readonly contentBytes: number | null
      readonly windowBytes: number
      readonly isSingleSegment: boolean
      readonly hasChecksum: boolean
    }

type BlockHeader = {
  readonly last: boolean
  readonly type: 'raw' | 'rle' | 'compressed' | 'reserved'
  /** In the file, after its 3-byte header. */
  readonly bytes: number
  /** Bytes in the file; of `rle` once decoded. */
  readonly sizeField: number
}

const MAX_FRAME_HEADER_BYTES = 18
const BLOCK_HEADER_BYTES = 3
/** A block holds no more, compressed or decoded, nor more than its frame's window. */
const MAX_BLOCK_BYTES = 128 * 1024

const MAGIC = 0xfd2fb528
const LEGACY: Readonly<Record<number, string>> = {
  0x1eb52ffd: '0.1',
  0xfd2fb522: '0.2',
  0xfd2fb523: '0.3',
  0xfd2fb524: '0.4',
  0xfd2fb525: '0.5',
  0xfd2fb526: '0.6',
  0xfd2fb527: '0.7',
}
const BLOCK_TYPES = ['raw', 'rle', 'compressed', 'reserved'] as const
const CUT_OFF = refuse({ why: 'cut-off' } as const)

export const isSkippableMagic = (magic: number) => (magic & 0xfffffff0) >>> 0 === 0x184d2a50
/** `0.1` to `0.7`; null: today's. */
export const legacyVersion = (magic: number): string | null => LEGACY[magic] ?? null

/** `cut-off`: more bytes are needed. */
export function parseFrameHeader(bytes: Buffer, at: number): Result<FrameHeader, ZstdProblem> {
  if (bytes.length - at < 4) return CUT_OFF
  const magic = bytes.readUInt32LE(at)
  if (isSkippableMagic(magic)) {
    if (bytes.length - at < 8) return CUT_OFF
    return accept({ kind: 'skippable', headerBytes: 8, bodyBytes: bytes.readUInt32LE(at + 4) })
  }
  const version = legacyVersion(magic)
  if (version !== null) return refuse({ why: 'legacy', version })
  return magic === MAGIC ? parseFields(bytes, at + 4) : refuse({ why: 'not-a-frame' })
}

/** `at`: of the descriptor, which says which fields follow. */
function parseFields(bytes: Buffer, at: number): Result<FrameHeader, ZstdProblem> {
  const descriptor = bytes[at]
  if (descriptor === undefined) return CUT_OFF
  if (descriptor & 0x08) return refuse({ why: 'reserved-bit' })
  const isSingleSegment = (descriptor & 0x20) !== 0
  const { idAt, idBytes, sizeAt, sizeBytes } = layOut(at, descriptor)
  const end = sizeAt + sizeBytes
  if (bytes.length < end) return CUT_OFF
  const id = idBytes === 0 ? 0 : bytes.readUIntLE(idAt, idBytes)
  if (id !== 0) return refuse({ why: 'dictionary', id })
  const contentBytes = parseContentBytes(bytes, sizeAt, sizeBytes)
  if (Number.isNaN(contentBytes)) return refuse({ why: 'content-too-large' })
  return accept({
    kind: 'frame',
    headerBytes: 4 + end - at,
    contentBytes,
    windowBytes: isSingleSegment ? (contentBytes ?? 0) : parseWindow(bytes.readUInt8(at + 1)),
    isSingleSegment,
    hasChecksum: (descriptor & 4) !== 0,
  })
}

function layOut(at: number, descriptor: number) {
  const isSingleSegment = (descriptor & 0x20) !== 0
  const idAt = at + (isSingleSegment ? 1 : 2)
  const idBytes = [0, 1, 2, 4][descriptor & 3] ?? 0
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0
  return { idAt, idBytes, sizeAt: idAt + idBytes, sizeBytes }
}

/** Null: not in the header; NaN: too large to count. */
function parseContentBytes(bytes: Buffer, at: number, length: number): number | null {
  if (length === 0) return null
  if (length === 2) return bytes.readUInt16LE(at) + 256
  if (length < 8) return bytes.readUIntLE(at, length)
  const high = bytes.readUInt32LE(at + 4)
  return high > 0x1fffff ? Number.NaN : high * 2 ** 32 + bytes.readUInt32LE(at)
}

const parseWindow = (descriptor: number) =>
  2 ** (10 + (descriptor >> 3)) * (1 + (descriptor & 7) / 8)

/** Whether its size is allowed depends on the frame. */
export function parseBlockHeader(
  bytes: Buffer,
  at: number,
): Result<BlockHeader, { readonly why: 'cut-off' }> {
  if (bytes.length - at < BLOCK_HEADER_BYTES) return CUT_OFF
  const header = bytes.readUIntLE(at, 3)
  const type = BLOCK_TYPES[(header >> 1) & 3] ?? 'reserved'
  const sizeField = header >> 3
  const size = type === 'rle' ? 1 : sizeField
  return accept({ last: (header & 1) === 1, type, bytes: size, sizeField })
}

const MESSAGES: Cases<'why', ZstdRefusal, string> = {
  'cut-off': ({ at }) => `the zstd data ends after ${at} bytes, in the middle of a frame`,
  'not-a-frame': ({ at }) => `no zstd data at byte ${at}`,
  legacy: ({ version }) =>
    `written by zstd ${version}, whose format is no longer supported; recompress it`,
  dictionary: ({ id }) => `compressed with the zstd dictionary ${id}, which is not at hand`,
  'reserved-bit': ({ at }) => `the zstd frame at byte ${at} uses a feature that is not known`,
  'content-too-large': ({ at }) => `the zstd frame at byte ${at} claims more than 8 PiB`,
  'garbage-after-frame': ({ at }) => `something that is not zstd data follows at byte ${at}`,
  'bad-block': ({ at }) => `the zstd block at byte ${at} is damaged`,
  'no-frame': () => 'no zstd data in it',
}

/** A clause behind the image's name. */
export const renderZstdRefusal = (refusal: ZstdRefusal): string =>
  decideCase(MESSAGES, 'why', refusal)

/** Bytes; null: no frame, or `data` ends inside it. */
export function findFrameEnd(data: Buffer): number | null {
  const header = parseFrameHeader(data, 0)
  if (!header.ok) return null
  const { value } = header
  const end =
    value.kind === 'skippable'
      ? value.headerBytes + value.bodyBytes
      : findBlocksEnd(data, value.headerBytes) + (value.hasChecksum ? 4 : 0)
  return end <= data.length ? end : null
}

/** Infinity: the data ends before the last block. */
function findBlocksEnd(data: Buffer, from: number): number {
  let at = from
  while (at < data.length) {
    const block = parseBlockHeader(data, at)
    if (!block.ok) break
    at += BLOCK_HEADER_BYTES + block.value.bytes
    if (block.value.last) return at
  }
  return Number.POSITIVE_INFINITY
}

export type Span =
  | {
      readonly kind: 'frame-start'
      readonly contentBytes: number | null
      readonly windowBytes: number
    }
  | { readonly kind: 'data'; readonly bytes: Buffer }
  | { readonly kind: 'frame-end' }

interface FrameWalker {
  /**
   * In order, without skippable frames. Views of the chunk, but for a frame header (at most 18
   * bytes) that began earlier. A refusal stays.
   */
  push(chunk: Buffer): Result<readonly Span[], ZstdRefusal>
  /** A reader may jump over so many bytes. */
  ahead(): number
  skip(bytes: number): void
  end(): Result<{ readonly frames: number; readonly bytes: number }, ZstdRefusal>
}

interface Walk {
  /** What stands `left` bytes ahead. */
  expect: 'header' | 'block' | 'frame-end'
  left: number
  inFrame: boolean
  maxBlockBytes: number
  checksumBytes: number
  frames: number
  /** The beginning of an incomplete header. */
  held: Buffer
  base: number
  refusal: ZstdRefusal | null
}

interface Cursor {
  readonly chunk: Buffer
  at: number
  from: number
  readonly spans: Span[]
}

const NOTHING = Buffer.alloc(0)

export function createFrameWalker(): FrameWalker {
  const walk: Walk = {
    expect: 'header',
    left: 0,
    inFrame: false,
    maxBlockBytes: 0,
    checksumBytes: 0,
    frames: 0,
    held: NOTHING,
    base: 0,
    refusal: null,
  }
  return {
    push(chunk) {
      const cursor: Cursor = { chunk, at: 0, from: 0, spans: [] }
      while (walk.refusal === null && advance(walk, cursor));
      if (walk.refusal !== null) return refuse(walk.refusal)
      endSpan(walk, cursor)
      walk.base += chunk.length
      return accept(cursor.spans)
    },
    ahead: () => walk.left,
    skip(bytes) {
      walk.left -= bytes
      walk.base += bytes
    },
    end: () => decideEnd(walk),
  }
}

/** False: the chunk is used up. */
function advance(walk: Walk, cursor: Cursor): boolean {
  const passed = Math.min(walk.left, cursor.chunk.length - cursor.at)
  walk.left -= passed
  cursor.at += passed
  if (walk.left > 0) return false
  if (walk.expect === 'frame-end') return endFrame(walk, cursor)
  if (cursor.at === cursor.chunk.length) return false
  return walk.expect === 'header' ? takeFrameHeader(walk, cursor) : takeBlockHeader(walk, cursor)
}

function endFrame(walk: Walk, cursor: Cursor) {
  endSpan(walk, cursor)
  cursor.spans.push({ kind: 'frame-end' })
  walk.inFrame = false
  walk.expect = 'header'
  return true
}

function endSpan({ inFrame }: Walk, cursor: Cursor) {
  const { chunk, from, at } = cursor
  if (inFrame && at > from) cursor.spans.push({ kind: 'data', bytes: chunk.subarray(from, at) })
  cursor.from = at
}

function takeFrameHeader(walk: Walk, cursor: Cursor): boolean {
  const [bytes, at] = readAhead(walk, cursor, MAX_FRAME_HEADER_BYTES)
  const parsed = parseFrameHeader(bytes, at)
  if (!parsed.ok) return holdOrRefuse(walk, cursor, bytes.subarray(at), parsed.refusal)
  if (parsed.value.kind === 'frame') startFrame(walk, cursor, parsed.value)
  else walk.left = parsed.value.bodyBytes
  cursor.at += parsed.value.headerBytes - walk.held.length
  walk.held = NOTHING
  return true
}

function startFrame(
  walk: Walk,
  cursor: Cursor,
  { contentBytes, windowBytes, hasChecksum }: Extract<FrameHeader, { kind: 'frame' }>,
) {
  cursor.spans.push({ kind: 'frame-start', contentBytes, windowBytes })
  if (walk.held.length > 0) cursor.spans.push({ kind: 'data', bytes: walk.held })
  cursor.from = cursor.at
  walk.inFrame = true
  walk.frames += 1
  walk.expect = 'block'
  walk.maxBlockBytes = Math.min(windowBytes, MAX_BLOCK_BYTES)
  walk.checksumBytes = hasChecksum ? 4 : 0
}

function takeBlockHeader(walk: Walk, cursor: Cursor): boolean {
  const [bytes, at] = readAhead(walk, cursor, BLOCK_HEADER_BYTES)
  const parsed = parseBlockHeader(bytes, at)
  if (!parsed.ok) return holdOrRefuse(walk, cursor, bytes.subarray(at), parsed.refusal)
  const block = parsed.value
  if (block.type === 'reserved' || block.sizeField > walk.maxBlockBytes) {
    walk.refusal = { why: 'bad-block', at: here(walk, cursor) }
    return false
  }
  walk.expect = block.last ? 'frame-end' : 'block'
  walk.left = block.bytes + (block.last ? walk.checksumBytes : 0)
  cursor.at += BLOCK_HEADER_BYTES - walk.held.length
  walk.held = NOTHING
  return true
}

function readAhead({ held }: Walk, { chunk, at }: Cursor, most: number): readonly [Buffer, number] {
  return held.length === 0 ? [chunk, at] : [Buffer.concat([held, chunk.subarray(at, at + most)]), 0]
}

/** Keeps an incomplete header; any other problem is the end. */
function holdOrRefuse(walk: Walk, cursor: Cursor, rest: Buffer, problem: ZstdProblem): false {
  if (problem.why === 'cut-off') {
    walk.held = Buffer.from(rest)
    cursor.at = cursor.chunk.length
    return false
  }
  const at = here(walk, cursor)
  const isGarbage = problem.why === 'not-a-frame' && walk.frames > 0
  walk.refusal = isGarbage ? { why: 'garbage-after-frame', at } : { ...problem, at }
  return false
}

const here = ({ base, held }: Walk, { at }: Cursor) => base + at - held.length

function decideEnd(walk: Walk): ReturnType<FrameWalker['end']> {
  const { refusal, left, expect, inFrame, held, base, frames } = walk
  if (refusal !== null) return refuse(refusal)
  if (left > 0 || (inFrame && expect === 'block')) return refuse({ why: 'cut-off', at: base })
  if (held.length === 0) {
    return frames > 0 ? accept({ frames, bytes: base }) : refuse({ why: 'no-frame', at: 0 })
  }
  if (startsLikeAFrame(held)) return refuse({ why: 'cut-off', at: base })
  const at = base - held.length
  return refuse({ why: frames > 0 ? 'garbage-after-frame' : 'not-a-frame', at })
}

/** Fewer bytes than a header. */
function startsLikeAFrame(held: Buffer): boolean {
  const [first = 0] = held
  const isSkippable = first >= 0x50 && first <= 0x5f
  const magic = isSkippable ? [first, 0x2a, 0x4d, 0x18] : [0x28, 0xb5, 0x2f, 0xfd]
  return magic.every((byte, at) => at >= held.length || held[at] === byte)
}

// The seek table at the end of zstd's seekable format: what it says of the frames before it.

export interface SeekFooter {
  readonly frames: number
  readonly entryBytes: 8 | 12
  readonly tableBytes: number
}

interface SeekTable {
  /** Of the frames in the file, without the table. */
  readonly frameBytes: number
  readonly contentBytes: number
}

interface SeekEntry {
  readonly storedBytes: number
  readonly contentBytes: number
}

export const SEEK_FOOTER_BYTES = 9
/** Some million frames. */
export const MAX_SEEK_TABLE_BYTES = 16 * 1024 * 1024

const SEEK_MAGIC = 0x8f92eab1
const SEEK_FRAME_MAGIC = 0x184d2a5e
const HEADER_BYTES = 8

/** A file's last nine bytes. */
export function parseSeekFooter(bytes: Buffer, at: number): Result<SeekFooter, 'no-table'> {
  if (bytes.length - at < SEEK_FOOTER_BYTES) return refuse('no-table')
  const descriptor = bytes.readUInt8(at + 4)
  const isKnown = bytes.readUInt32LE(at + 5) === SEEK_MAGIC && (descriptor & 0x7c) === 0
  if (!isKnown) return refuse('no-table')
  const frames = bytes.readUInt32LE(at)
  const entryBytes = descriptor & 0x80 ? 12 : 8
  const tableBytes = HEADER_BYTES + frames * entryBytes + SEEK_FOOTER_BYTES
  return accept({ frames, entryBytes, tableBytes })
}

export function parseSeekTable(bytes: Buffer, footer: SeekFooter): Result<SeekTable, 'no-table'> {
  const { frames, tableBytes } = footer
  const isFrame =
    bytes.length >= tableBytes &&
    bytes.readUInt32LE(0) === SEEK_FRAME_MAGIC &&
    bytes.readUInt32LE(4) === tableBytes - HEADER_BYTES
  if (!isFrame) return refuse('no-table')
  let frameBytes = 0
  let contentBytes = 0
  for (let frame = 0; frame < frames; frame++) {
    const entry = readSeekEntry(bytes, footer, frame)
    frameBytes += entry.storedBytes
    contentBytes += entry.contentBytes
  }
  return accept({ frameBytes, contentBytes })
}

export const readSeekEntry = (
  bytes: Buffer,
  { entryBytes }: SeekFooter,
  frame: number,
): SeekEntry => ({
  storedBytes: bytes.readUInt32LE(HEADER_BYTES + frame * entryBytes),
  contentBytes: bytes.readUInt32LE(HEADER_BYTES + 4 + frame * entryBytes),
})

export function encodeSeekTable(entries: readonly SeekEntry[]): Buffer {
  const table = Buffer.alloc(HEADER_BYTES + entries.length * 8 + SEEK_FOOTER_BYTES)
  table.writeUInt32LE(SEEK_FRAME_MAGIC, 0)
  table.writeUInt32LE(table.length - HEADER_BYTES, 4)
  entries.forEach(({ storedBytes, contentBytes }, index) => {
    table.writeUInt32LE(storedBytes, HEADER_BYTES + index * 8)
    table.writeUInt32LE(contentBytes, HEADER_BYTES + index * 8 + 4)
  })
  const footer = table.length - SEEK_FOOTER_BYTES
  table.writeUInt32LE(entries.length, footer)
  table.writeUInt32LE(SEEK_MAGIC, footer + 5)
  return table
}

/** Walked however far away it is. */
const SMALL_FILE_BYTES = 256 * 1024

/**
 * `walk`: every block header, which finds a cut or trailing file. `glance`: the seek table, else
 * the first frame's own size, in a few reads; further frames make the image larger than that.
 */
export function measureZstd(fileBytes: number, way: 'walk' | 'glance'): RangeStep {
  return way === 'walk' || fileBytes <= SMALL_FILE_BYTES
    ? walkFrames(fileBytes, 'all')
    : findTable(fileBytes)
}

const NO_FRAMES = { contentBytes: 0, isExact: true, frames: 0 }

interface Walked {
  readonly fileBytes: number
  readonly reach: 'all' | 'first'
  readonly at: number
  readonly contentBytes: number
  readonly isExact: boolean
  readonly frames: number
}

const walkFrames = (fileBytes: number, reach: Walked['reach']): RangeStep =>
  walkFrom({ fileBytes, reach, at: 0, ...NO_FRAMES }, createFrameWalker())

function walkFrom(walked: Walked, walker: FrameWalker): RangeStep {
  const { fileBytes, reach, at, contentBytes, isExact, frames } = walked
  if (at >= fileBytes) return endWalk(walked, walker)
  const length = Math.min(MAX_FRAME_HEADER_BYTES, fileBytes - at)
  // Inside the only frame so far, its own size is all that is known.
  const stopped = sizeOf(contentBytes, isExact && frames === 1)
  return reading([at, length], stopped, (bytes) => {
    const sizes = takeSizes(walker, bytes)
    if (!sizes.ok) return refused(sizes.refusal)
    const next = at + bytes.length
    if (reach === 'first' && sizes.value.length > 0) {
      return known(decideFirst(fileBytes, next, sizes.value))
    }
    const jump = Math.min(walker.ahead(), fileBytes - next)
    walker.skip(jump)
    return walkFrom({ ...walked, at: next + jump, ...addUp(walked, sizes.value) }, walker)
  })
}

function takeSizes(walker: FrameWalker, bytes: Buffer): Result<readonly (number | null)[], string> {
  const spans = walker.push(bytes)
  if (!spans.ok) return refuse(renderZstdRefusal(spans.refusal))
  return accept(
    spans.value.flatMap((span) => (span.kind === 'frame-start' ? [span.contentBytes] : [])),
  )
}

function addUp(
  { contentBytes, isExact, frames }: typeof NO_FRAMES,
  sizes: readonly (number | null)[],
) {
  return {
    contentBytes: sizes.reduce<number>((sum, size) => sum + (size ?? 0), contentBytes),
    isExact: isExact && !sizes.includes(null),
    frames: frames + sizes.length,
  }
}

function endWalk({ contentBytes, isExact }: Walked, walker: FrameWalker): RangeStep {
  const end = walker.end()
  if (!end.ok) return refused(renderZstdRefusal(end.refusal))
  return known(sizeOf(contentBytes, isExact))
}

const sizeOf = (bytes: number, isExact: boolean): VirtualSize =>
  isExact && Number.isSafeInteger(bytes) ? { kind: 'exact', bytes } : atLeast(bytes)

function findTable(fileBytes: number): RangeStep {
  const at = fileBytes - SEEK_FOOTER_BYTES
  return reading([at, SEEK_FOOTER_BYTES], UNKNOWN_SIZE, (bytes) => {
    const footer = parseSeekFooter(bytes, 0)
    const isReadable =
      footer.ok && footer.value.tableBytes <= Math.min(fileBytes, MAX_SEEK_TABLE_BYTES)
    return isReadable ? readTable(fileBytes, footer.value) : walkFrames(fileBytes, 'first')
  })
}

function readTable(fileBytes: number, footer: SeekFooter): RangeStep {
  const at = fileBytes - footer.tableBytes
  return reading([at, footer.tableBytes], UNKNOWN_SIZE, (bytes) => {
    const table = parseSeekTable(bytes, footer)
    // A table that does not cover the file belongs to another one.
    const isWhole = table.ok && table.value.frameBytes === at
    return isWhole ? known(sizeOf(table.value.contentBytes, true)) : walkFrames(fileBytes, 'first')
  })
}

/** More bytes than such a frame takes at its worst are further frames. */
function decideFirst(fileBytes: number, seen: number, sizes: readonly (number | null)[]) {
  const { contentBytes, isExact, frames } = addUp(NO_FRAMES, sizes)
  const most = seen + contentBytes * (1 + 1 / 128) + SMALL_FILE_BYTES
  return sizeOf(contentBytes, isExact && frames === 1 && fileBytes <= most)
}
