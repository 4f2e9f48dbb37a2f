/** The gzip file format (RFC 1952): its header, and the size in its trailer. */
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
  return reading([fileBytes - 4, 4], UNKNOWN_SIZE, (bytes) => {
    const size = bytes.readUInt32LE(0)
    return size > fileBytes * MAX_RATIO ? refused(NO_END) : known(atLeast(size))
  })
}
