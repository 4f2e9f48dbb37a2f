/** Metadata as OpenWrt's tool appends it to an image: its bytes, then 16 that say how many they are. */

export function makeTrailer(metadata: Buffer): Buffer {
  const end = Buffer.alloc(16)
  end.write('FWx0', 0, 'latin1')
  end.writeUInt32BE(0x12345678, 4)
  end.writeUInt32BE(metadata.length + end.length, 12)
  return Buffer.concat([metadata, end])
}
