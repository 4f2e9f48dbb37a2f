/** The gzip file format (RFC 1952): its header, and the size in its trailer. */
import { atLeast, known, type RangeStep, reading, refused, UNKNOWN_SIZE } from './image.ts'

/** Header, the shortest deflate stream and trailer. */
const MIN_BYTES = 20
/** Deflate spends at least two bits on 258 bytes. */
const MAX_RATIO = 1032

const NO_END = 'its end is not valid gzip: it is cut off, or other data follows'

/**
 * By ISIZE, the last four bytes: modulo 4 GiB and of the last member alone, a lower bound that
 * never proves that something fits.
 */
export function measureGzip(head: Buffer, fileBytes: number): RangeStep {
  if (head.length < 10 || fileBytes < MIN_BYTES) return refused(NO_END)
  if (head.readUInt16BE(0) !== 0x1f8b) return refused('no gzip data in it')
  // A method other than deflate, or flags of no version.
  if (head.readUInt8(2) !== 8 || (head.readUInt8(3) & 0xe0) !== 0) {
    return refused('its gzip header asks for something that is not known')
  }
  return reading([fileBytes - TRAILER_BYTES, TRAILER_BYTES], UNKNOWN_SIZE, (bytes) => {
    if (parseTrailer(bytes) !== null) return findEnd(fileBytes, { at: fileBytes, last: bytes }, 1)
    const size = bytes.readUInt32LE(TRAILER_BYTES - 4)
    return size > fileBytes * MAX_RATIO ? refused(NO_END) : known(atLeast(size))
  })
}

interface Tail {
  /** The file's end without the pieces found so far. */
  readonly at: number
  readonly last: Buffer
}

function findEnd(fileBytes: number, { at, last }: Tail, pieces: number): RangeStep {
  const size = parseTrailer(last) ?? 0
  const start = at - size
  const unsure = known(UNKNOWN_SIZE, ignored(fileBytes - start))
  if (start < MIN_BYTES || pieces > MAX_PIECES) return known(UNKNOWN_SIZE)
  const length = TRAILER_BYTES + METADATA_START_BYTES
  return reading([start - TRAILER_BYTES, length], UNKNOWN_SIZE, (bytes) => {
    const before = bytes.subarray(0, TRAILER_BYTES)
    if (parseTrailer(before) !== null) {
      return findEnd(fileBytes, { at: start, last: before }, pieces + 1)
    }
    // A size that leads to anything else is wrong.
    if (!isMetadataStart(bytes.subarray(TRAILER_BYTES))) return unsure
    const contentBytes = before.readUInt32LE(TRAILER_BYTES - 4)
    return contentBytes > start * MAX_RATIO
      ? unsure
      : known(atLeast(contentBytes), ignored(fileBytes - start))
  })
}

const ignored = (bytes: number) => `${bytes} bytes of metadata after the gzip data are ignored`

/** Metadata ends with `FWx0`, a checksum, its type, and its big-endian size with these 16 bytes. */
export const TRAILER_BYTES = 16
const MAGIC = Buffer.from('FWx0', 'latin1')
const SIZE_AT = 12
/** Metadata and certificates are far smaller. */
export const MAX_TRAILER_BYTES: number = 1024 * 1024
/** OpenWrt appends two pieces. */
export const MAX_PIECES = 8
/** Version and flags, which are 0, then JSON. */
const METADATA_START = Buffer.from('\0\0\0\0\0\0\0\0{', 'latin1')
const METADATA_START_BYTES: number = METADATA_START.length

/** In bytes, by its own size field; null: no metadata ends here. */
export function parseTrailer(last: Buffer): number | null {
  if (last.length < TRAILER_BYTES) return null
  const trailer = last.subarray(last.length - TRAILER_BYTES)
  if (!trailer.subarray(0, MAGIC.length).equals(MAGIC)) return null
  const size = trailer.readUInt32BE(SIZE_AT)
  return size >= TRAILER_BYTES && size <= MAX_TRAILER_BYTES ? size : null
}

const isMetadataStart = (bytes: Buffer): boolean =>
  bytes.subarray(0, METADATA_START_BYTES).equals(METADATA_START)

/** For the rest behind complete gzip data. A piece that claims more takes all that is left. */
export function isTrailer(rest: Buffer): boolean {
  let left = rest
  for (let size = parseTrailer(left); size !== null; size = parseTrailer(left)) {
    if (size >= left.length) return true
    left = left.subarray(0, left.length - size)
  }
  return left.every((byte) => byte === 0)
}
