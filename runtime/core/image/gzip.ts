/** gzip as it lies in a file (RFC 1952): its header, and what its trailer says of the size. */
import { atLeast, known, refused, type RangeStep } from './range.ts'
import { accept, refuse, type Result } from '../foundation/result.ts'

type GzipRefusal =
  | { readonly why: 'not-gzip' }
  /** A compression method other than deflate, or flags that no version knows. */
  | { readonly why: 'unknown-header' }
  | { readonly why: 'cut-off' }

/** Header, the shortest deflate stream and trailer. */
const MIN_BYTES = 20
/** Deflate spends at least two bits on 258 bytes, so no file holds more than this many times itself. */
const MAX_RATIO = 1032

/** Checks the fixed part of a member's header, 10 bytes. */
export function parseGzipHeader(head: Buffer): Result<'gzip', GzipRefusal> {
  if (head.length < 10) return refuse({ why: 'cut-off' })
  if (head.readUInt16BE(0) !== 0x1f8b) return refuse({ why: 'not-gzip' })
  const isKnown = head.readUInt8(2) === 8 && (head.readUInt8(3) & 0xe0) === 0
  return isKnown ? accept('gzip') : refuse({ why: 'unknown-header' })
}

/**
 * The virtual size from the file's last four bytes, ISIZE. It counts modulo 4 GiB, and with several
 * members it is the last one's alone: a lower bound, never proof that something fits.
 */
export function measureGzip(head: Buffer, fileBytes: number): RangeStep<GzipRefusal> {
  const header = parseGzipHeader(head)
  if (!header.ok) return refused(header.refusal)
  if (fileBytes < MIN_BYTES) return refused({ why: 'cut-off' })
  return {
    kind: 'read',
    at: fileBytes - 4,
    length: 4,
    stopped: { kind: 'unknown' },
    take(bytes) {
      const size = bytes.readUInt32LE(0)
      return size > fileBytes * MAX_RATIO ? refused({ why: 'cut-off' }) : known(atLeast(size))
    },
  }
}

const MESSAGES: Readonly<Record<GzipRefusal['why'], string>> = {
  'not-gzip': 'no gzip data in it',
  'unknown-header': 'its gzip header asks for something that is not known',
  'cut-off': 'its end is not that of gzip data: it is cut off, or something follows',
}

/** What is wrong, as a clause to stand after the image's name. */
export const renderGzipRefusal = ({ why }: GzipRefusal): string => MESSAGES[why]
