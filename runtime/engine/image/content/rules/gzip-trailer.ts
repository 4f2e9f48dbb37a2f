/** What may follow the gzip data of an image: signed metadata as OpenWrt appends it, or zeros. */
/**
 * Each piece of metadata ends with `FWx0`, a checksum, its type, and its size as a big-endian number
 * that counts these 16 bytes as well.
 */
export const TRAILER_BYTES = 16
const MAGIC = Buffer.from('FWx0', 'latin1')
const SIZE_AT = 12
/** Metadata and certificates are far smaller. */
export const MAX_TRAILER_BYTES: number = 1024 * 1024
/** OpenWrt appends two pieces. */
export const MAX_PIECES = 8
/** A piece of metadata begins with version and flags, which are 0, and is JSON. */
const METADATA_START = Buffer.from('\0\0\0\0\0\0\0\0{', 'latin1')
export const METADATA_START_BYTES: number = METADATA_START.length

/** In bytes, as the piece that ends here says itself; null where none does. */
export function parseTrailer(last: Buffer): number | null {
  if (last.length < TRAILER_BYTES) return null
  const trailer = last.subarray(last.length - TRAILER_BYTES)
  if (!trailer.subarray(0, MAGIC.length).equals(MAGIC)) return null
  const size = trailer.readUInt32BE(SIZE_AT)
  return size >= TRAILER_BYTES && size <= MAX_TRAILER_BYTES ? size : null
}

export const isMetadataStart = (bytes: Buffer): boolean =>
  bytes.subarray(0, METADATA_START_BYTES).equals(METADATA_START)

/**
 * They follow the gzip data, which has proved to be whole. A piece that says it is larger than what
 * is left is all that is left.
 */
export function isTrailer(rest: Buffer): boolean {
  let left = rest
  for (let size = parseTrailer(left); size !== null; size = parseTrailer(left)) {
    if (size >= left.length) return true
    left = left.subarray(0, left.length - size)
  }
  return left.every((byte) => byte === 0)
}
