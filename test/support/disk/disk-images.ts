/** Raw disk images for tests: boot code, a real GPT, and data between runs of zeros of many lengths. */
import { createCipheriv } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { createRandom } from '../collect.ts'

/** Bytes that repeat nowhere, the same for the same seed; much faster than hashing. */
export function makeNoise(bytes: number, seed = 1): Buffer {
  const key = Buffer.alloc(16, `seed ${seed}`)
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(bytes))
}

const KIB = 1024
const MIB = 1024 * KIB
/** Around every border that the engine cuts at: sector, page, grain, shortest run, slot. */
const LENGTHS = [
  1,
  511,
  512,
  4096,
  64 * KIB - 1,
  64 * KIB,
  64 * KIB + 1,
  512 * KIB - 512,
  512 * KIB,
  512 * KIB + 1,
  MIB + 3,
  3 * MIB,
  4 * MIB,
  5 * MIB + 512,
]

/** Data and zeros in turn. */
export function makeContent(bytes: number, seed = 1): Buffer {
  const content = makeNoise(bytes, seed)
  const random = createRandom(seed)
  const nextLength = () => LENGTHS[Math.floor(random() * LENGTHS.length)] ?? 1
  for (let at = nextLength(); at < bytes; at += nextLength()) {
    const end = Math.min(bytes, at + nextLength())
    content.fill(0, at, end)
    at = end
  }
  return content
}

export interface DiskImageOptions {
  readonly seed?: number
  readonly sectorBytes?: 512 | 4096
}

/** A whole disk's image that looks as if it could boot; what is behind its last whole sector is data. */
export function makeDiskImage(
  bytes: number,
  { seed = 1, sectorBytes = 512 }: DiskImageOptions = {},
): Buffer {
  const image = makeContent(bytes, seed)
  const sectors = Math.floor(bytes / sectorBytes)
  // A disk so small has no room for a table.
  if (bytes >= 128 * KIB) writeGpt(image.subarray(0, sectors * sectorBytes), sectorBytes, seed)
  else if (bytes >= 512) writeBootCode(image, sectors)
  return image
}

const ENTRIES = 128
const ENTRY_BYTES = 128

/** Puts a protective MBR with boot code, one partition and both tables onto a disk's bytes. */
export function writeGpt(disk: Buffer, sectorBytes: number, seed = 1): void {
  const lastLba = disk.length / sectorBytes - 1
  const entrySectors = (ENTRIES * ENTRY_BYTES) / sectorBytes
  const [firstUsable, lastUsable] = [2 + entrySectors, lastLba - entrySectors - 1]
  const entries = Buffer.alloc(ENTRIES * ENTRY_BYTES)
  // The type is "Linux filesystem data".
  Buffer.from('af3dc60f838472478e793d69d8477de4', 'hex').copy(entries)
  makeNoise(16, seed).copy(entries, 16)
  entries.writeBigUInt64LE(BigInt(firstUsable), 32)
  entries.writeBigUInt64LE(BigInt(lastUsable), 40)
  const header = (own: number, other: number, entriesLba: number) => {
    const bytes = Buffer.alloc(sectorBytes)
    bytes.write('EFI PART', 'latin1')
    bytes.writeUInt32LE(0x0001_0000, 8)
    bytes.writeUInt32LE(92, 12)
    const places = [own, other, firstUsable, lastUsable]
    for (const [n, lba] of places.entries()) bytes.writeBigUInt64LE(BigInt(lba), 24 + 8 * n)
    makeNoise(16, seed + 1).copy(bytes, 56)
    bytes.writeBigUInt64LE(BigInt(entriesLba), 72)
    bytes.writeUInt32LE(ENTRIES, 80)
    bytes.writeUInt32LE(ENTRY_BYTES, 84)
    bytes.writeUInt32LE(crc32(entries), 88)
    bytes.writeUInt32LE(crc32(bytes.subarray(0, 92)), 16)
    return bytes
  }
  disk.fill(0, 0, firstUsable * sectorBytes)
  writeBootCode(disk, lastLba)
  header(1, lastLba, 2).copy(disk, sectorBytes)
  entries.copy(disk, 2 * sectorBytes)
  entries.copy(disk, (lastLba - entrySectors) * sectorBytes)
  header(lastLba, 1, lastLba - entrySectors).copy(disk, lastLba * sectorBytes)
}

function writeBootCode(disk: Buffer, sectors: number) {
  disk.write('\xeb\x63\x90 boot code', 'latin1')
  disk.fill(0, 440, 512)
  const entry = Buffer.from('00000200eeffffff01000000', 'hex')
  entry.copy(disk, 446)
  disk.writeUInt32LE(Math.min(sectors, 0xffff_ffff), 458)
  disk.writeUInt16LE(0xaa55, 510)
}
