/** Splits a stream of zstd bytes into its frames without copying, by the block headers alone. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  BLOCK_HEADER_BYTES,
  type FrameHeader,
  MAX_BLOCK_BYTES,
  MAX_FRAME_HEADER_BYTES,
  parseBlockHeader,
  parseFrameHeader,
  type ZstdProblem,
  type ZstdRefusal,
} from './zstd.ts'

export type Span =
  | {
      readonly kind: 'frame-start'
      readonly contentBytes: number | null
      readonly windowBytes: number
    }
  | { readonly kind: 'data'; readonly bytes: Buffer }
  | { readonly kind: 'frame-end' }

export interface FrameWalker {
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
