/** The gzip file format (RFC 1952): its header, and the size in its trailer. */
import {
  isMetadataStart,
  MAX_PIECES,
  METADATA_START_BYTES,
  parseTrailer,
  TRAILER_BYTES,
} from '../content/rules/gzip-trailer.ts'
import { atLeast, known, reading, refused, type RangeStep, UNKNOWN_SIZE } from './range.ts'

/** Header, the shortest deflate stream and trailer. */
const MIN_BYTES = 20
/** Deflate spends at least two bits on 258 bytes, so no file holds more than this many times itself. */
const MAX_RATIO = 1032

const NO_END = 'its end is not that of gzip data: it is cut off, or something follows'

/**
 * The virtual size from the file's last four bytes, ISIZE. It counts modulo 4 GiB, and with several
 * members it is the last one's alone: a lower bound, never proof that something fits.
 */
export function measureGzip(head: Buffer, fileBytes: number): RangeStep {
  if (head.length < 10 || fileBytes < MIN_BYTES) return refused(NO_END)
  if (head.readUInt16BE(0) !== 0x1f8b) return refused('no gzip data in it')
  // A method other than deflate, or flags that no version knows.
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
  /** Where the file ends, without the pieces found so far. */
  readonly at: number
  /** The bytes before it. */
  readonly last: Buffer
}

/** Goes back over the pieces of metadata by their own sizes, to what the gzip data ends with. */
function findEnd(fileBytes: number, { at, last }: Tail, pieces: number): RangeStep {
  const size = parseTrailer(last) ?? 0
  const start = at - size
  const unsure = known(UNKNOWN_SIZE, ignored(fileBytes - start))
  if (start < MIN_BYTES || pieces > MAX_PIECES) return known(UNKNOWN_SIZE)
  // All that is at hand behind a place may be given.
  const length = TRAILER_BYTES + METADATA_START_BYTES
  return reading([start - TRAILER_BYTES, length], UNKNOWN_SIZE, (bytes) => {
    const before = bytes.subarray(0, TRAILER_BYTES)
    if (parseTrailer(before) !== null) {
      return findEnd(fileBytes, { at: start, last: before }, pieces + 1)
    }
    // A size that leads to anything else is not to be believed.
    if (!isMetadataStart(bytes.subarray(TRAILER_BYTES))) return unsure
    const contentBytes = before.readUInt32LE(TRAILER_BYTES - 4)
    return contentBytes > start * MAX_RATIO
      ? unsure
      : known(atLeast(contentBytes), ignored(fileBytes - start))
  })
}

const ignored = (bytes: number) => `${bytes} bytes of metadata behind the gzip data are ignored`
