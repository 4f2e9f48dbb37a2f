/** The xz file format: stream header, footer and index, and the decoded size, read from the end. */
import { crc32 } from 'node:zlib'
import { atLeast, known, reading, refused, type RangeStep } from './image.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

type XzProblem =
  | 'cut-off'
  | 'not-a-stream'
  | 'bad-header'
  | 'bad-footer'
  | 'bad-index'
  /** Index and file disagree on where the stream starts. */
  | 'index-mismatch'

interface XzFooter {
  /** Kind of integrity check, 0 to 15; the header has the same. */
  readonly check: number
  readonly indexBytes: number
}

interface XzIndex {
  readonly blocks: number
  /** Of all blocks in the file, each padded to a multiple of four. */
  readonly blockBytes: number
  readonly contentBytes: number
}

const XZ_FRAMING_BYTES = 12
/** For some million blocks. */
export const MAX_INDEX_BYTES = 8 * 1024 * 1024
const MAX_PADDING_BYTES = 1024 * 1024
const TAIL_BYTES = 1024
/** Header and one byte of data. */
const MIN_UNPADDED_BYTES = 5

const HEADER_MAGIC = Buffer.from('fd377a585a00', 'hex')
const FOOTER_MAGIC = Buffer.from('YZ', 'latin1')

const padded = (bytes: number) => bytes + ((4 - (bytes % 4)) % 4)

const parseFlags = (bytes: Buffer, at: number) => {
  const flags = bytes.readUInt16BE(at)
  return flags <= 0x0f ? flags : null
}

export function parseXzHeader(bytes: Buffer, at: number): Result<number, XzProblem> {
  if (bytes.length - at < XZ_FRAMING_BYTES) return refuse('cut-off')
  if (!bytes.subarray(at, at + 6).equals(HEADER_MAGIC)) return refuse('not-a-stream')
  const check = parseFlags(bytes, at + 6)
  const isWhole = crc32(bytes.subarray(at + 6, at + 8)) === bytes.readUInt32LE(at + 8)
  return isWhole && check !== null ? accept(check) : refuse('bad-header')
}

export function parseXzFooter(bytes: Buffer, at: number): Result<XzFooter, XzProblem> {
  if (bytes.length - at < XZ_FRAMING_BYTES) return refuse('cut-off')
  if (!bytes.subarray(at + 10, at + 12).equals(FOOTER_MAGIC)) return refuse('bad-footer')
  const check = parseFlags(bytes, at + 8)
  const isWhole = crc32(bytes.subarray(at + 4, at + 10)) === bytes.readUInt32LE(at)
  if (!isWhole || check === null) return refuse('bad-footer')
  return accept({ check, indexBytes: (bytes.readUInt32LE(at + 4) + 1) * 4 })
}

/** From the index's zero byte to its checksum. */
export function parseXzIndex(bytes: Buffer): Result<XzIndex, 'bad-index'> {
  const end = bytes.length - 4
  if (end < 4 || bytes[0] !== 0) return refuse('bad-index')
  const isWhole = crc32(bytes.subarray(0, end)) === bytes.readUInt32LE(end)
  const [blocks, first] = parseNumber(bytes, 1, end)
  // A record takes at least two bytes, which bounds the loop.
  const isPossible = blocks <= (end - first) / 2
  const index = isWhole && isPossible ? addUpRecords(bytes, first, end, blocks) : null
  return index === null ? refuse('bad-index') : accept(index)
}

function addUpRecords(bytes: Buffer, first: number, end: number, blocks: number): XzIndex | null {
  let at = first
  let blockBytes = 0
  let contentBytes = 0
  for (let block = 0; block < blocks; block++) {
    const [unpadded, middle] = parseNumber(bytes, at, end)
    const [content, next] = parseNumber(bytes, middle, end)
    // Also false for NaN.
    if (!(unpadded >= MIN_UNPADDED_BYTES)) return null
    blockBytes += padded(unpadded)
    contentBytes += content
    at = next
  }
  const isCounted = Number.isSafeInteger(blockBytes) && Number.isSafeInteger(contentBytes)
  const isPadded = end - at <= 3 && bytes.subarray(at, end).every((byte) => byte === 0)
  return isCounted && isPadded ? { blocks, blockBytes, contentBytes } : null
}

/** 7 bits per byte, lowest first; returns the number and the next offset. NaN: invalid. */
function parseNumber(bytes: Buffer, at: number, end: number): readonly [number, number] {
  let value = 0
  for (let index = 0; index < 9 && at + index < end; index++) {
    const byte = bytes[at + index] ?? 0
    value += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) {
      const isShortest = byte !== 0 || index === 0
      return [isShortest && Number.isSafeInteger(value) ? value : Number.NaN, at + index + 1]
    }
  }
  return [Number.NaN, end]
}

/** Exact: by the indexes of all streams, the last one first. */
export function measureXz(head: Buffer, fileBytes: number): RangeStep {
  const header = parseXzHeader(head, 0)
  const isShort = fileBytes < 2 * XZ_FRAMING_BYTES || fileBytes % 4 !== 0
  if (!header.ok && header.refusal !== 'cut-off') return fail(header.refusal, 0)
  if (!header.ok || isShort) return fail('cut-off', fileBytes)
  return findFooter({ fileBytes, end: fileBytes, padding: 0, contentBytes: 0 })
}

interface Behind {
  readonly fileBytes: number
  readonly end: number
  readonly padding: number
  readonly contentBytes: number
}

function findFooter(behind: Behind): RangeStep {
  const { end, contentBytes, fileBytes } = behind
  const isLast = end + behind.padding === fileBytes
  if (end < 2 * XZ_FRAMING_BYTES) return fail('bad-footer', end)
  const length = Math.min(TAIL_BYTES, end)
  return reading([end - length, length], atLeast(contentBytes), (bytes) => {
    const kept = lengthWithoutPadding(bytes.subarray(0, length))
    if (kept < length) return stepOverPadding(behind, length - kept)
    const footer = parseXzFooter(bytes, length - XZ_FRAMING_BYTES)
    if (footer.ok) return readIndex(behind, footer.value)
    return isLast ? fail('cut-off', fileBytes) : fail(footer.refusal, end - 12)
  })
}

function stepOverPadding(behind: Behind, bytes: number): RangeStep {
  const padding = behind.padding + bytes
  if (padding > MAX_PADDING_BYTES) return known(atLeast(behind.contentBytes))
  return findFooter({ ...behind, end: behind.end - bytes, padding })
}

function lengthWithoutPadding(bytes: Buffer): number {
  let length = bytes.length
  while (length >= 4 && bytes.readUInt32LE(length - 4) === 0) length -= 4
  return length
}

function readIndex(behind: Behind, { check, indexBytes }: XzFooter): RangeStep {
  const at = behind.end - XZ_FRAMING_BYTES - indexBytes
  if (at < XZ_FRAMING_BYTES) return fail('bad-index', behind.end)
  const stopped = atLeast(behind.contentBytes)
  if (indexBytes > MAX_INDEX_BYTES) return known(stopped)
  return reading([at, indexBytes], stopped, (bytes) => {
    const index = parseXzIndex(bytes.subarray(0, indexBytes))
    if (!index.ok) return fail('bad-index', at)
    const { blockBytes } = index.value
    const contentBytes = behind.contentBytes + index.value.contentBytes
    if (!Number.isSafeInteger(contentBytes)) return fail('bad-index', at)
    const start = at - blockBytes - XZ_FRAMING_BYTES
    if (start < 0) return fail('index-mismatch', at)
    return readHeader({ ...behind, end: start, padding: 0, contentBytes }, check)
  })
}

/** `behind.end`: where the index says that the stream starts. */
function readHeader(behind: Behind, check: number): RangeStep {
  const { end: at, contentBytes } = behind
  return reading([at, XZ_FRAMING_BYTES], atLeast(contentBytes), (bytes) => {
    const header = parseXzHeader(bytes, 0)
    if (!header.ok || header.value !== check) return fail('index-mismatch', at)
    return at === 0 ? known({ kind: 'exact', bytes: contentBytes }) : findFooter(behind)
  })
}

const MESSAGES: Readonly<Record<XzProblem, (at: number) => string>> = {
  'cut-off': (at) =>
    `its end is not valid xz: it is cut off after ${at} bytes, or other data follows`,
  'not-a-stream': () => 'no xz data in it',
  'bad-header': () => 'its xz header is damaged',
  'bad-footer': (at) => `the xz stream that ends near byte ${at} is damaged`,
  'bad-index': (at) => `its xz index near byte ${at} is damaged`,
  'index-mismatch': (at) => `its xz index does not fit its data near byte ${at}`,
}

/** `at`: offset in the file; with `cut-off`, the file's size. */
const fail = (why: XzProblem, at: number) => refused(MESSAGES[why](at))
