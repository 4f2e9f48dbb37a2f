/** What may follow the gzip data of an image: signed metadata as OpenWrt appends it, or zeros. */
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
export const METADATA_START_BYTES: number = METADATA_START.length

/** In bytes, by its own size field; null: no metadata ends here. */
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
 * For the rest behind complete gzip data. A piece that claims to be larger takes all that is left.
 */
export function isTrailer(rest: Buffer): boolean {
  let left = rest
  for (let size = parseTrailer(left); size !== null; size = parseTrailer(left)) {
    if (size >= left.length) return true
    left = left.subarray(0, left.length - size)
  }
  return left.every((byte) => byte === 0)
}
