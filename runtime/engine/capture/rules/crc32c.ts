/** CRC-32C (Castagnoli) without the final inversion, as file systems chain it. */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0x82f6_3b78 : crc >>> 1
  return crc >>> 0
})

export function crc32c(bytes: Uint8Array, before: number): number {
  let crc = before >>> 0
  for (const byte of bytes) crc = (TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8)
  return crc >>> 0
}
