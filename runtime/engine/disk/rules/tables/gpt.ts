/** The parts of the GUID partition table that writing a whole disk depends on. */
import { crc32 } from 'node:zlib'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

const SIGNATURE = Buffer.from('EFI PART', 'latin1')
const SECTOR_SIZES = [512, 4096] as const

/** UEFI specification 2.10, table 5.5. */
export const GPT_AT = {
  headerBytes: 12,
  headerCrc: 16,
  myLba: 24,
  otherLba: 32,
  lastUsable: 48,
  entriesLba: 72,
  entryCount: 80,
  entryBytes: 84,
  entriesCrc: 88,
} as const

export const hasHeader = (bytes: Buffer, at: number): boolean =>
  bytes.subarray(at, at + SIGNATURE.length).equals(SIGNATURE)

/** Null: no GPT. `head`: the image's first bytes. */
export function parseTableSector(head: Buffer): number | null {
  return SECTOR_SIZES.find((size) => hasHeader(head, size)) ?? null
}

export function parseBackupBytes(end: Buffer): number {
  // The header is the last sector, behind 16 KiB of entries.
  const sizes = SECTOR_SIZES.filter((size) => hasHeader(end, end.length - size))
  return Math.max(0, ...sizes.map((size) => size + 16 * 1024))
}

export type GptRefusal = 'no-gpt' | 'damaged-gpt' | 'disk-too-small'

export interface MovedBackup {
  readonly head: Buffer
  /** To be written from `offset` to the end of the disk. */
  readonly backup: Buffer
  readonly offset: number
}

/** In copies, as `sgdisk --move-second-header`. Refused: no GPT, a damaged one, or no room. */
export function moveBackup(
  head: Buffer,
  diskBytes: number,
  sectorBytes: number,
): Result<MovedBackup, GptRefusal> {
  if (!hasHeader(head, sectorBytes)) return refuse('no-gpt')
  const table = parseTable(head, sectorBytes)
  if (table === null) return refuse('damaged-gpt')
  const lastLba = diskBytes / sectorBytes - 1
  const entrySectors = Math.ceil(table.entries.length / sectorBytes)
  const entriesLba = lastLba - entrySectors
  if (table.lastUsed >= entriesLba || entriesLba <= table.firstFree) return refuse('disk-too-small')
  const moved = Buffer.from(head)
  const primary = moved.subarray(sectorBytes, sectorBytes + table.headerBytes)
  primary.writeBigUInt64LE(BigInt(lastLba), GPT_AT.otherLba)
  primary.writeBigUInt64LE(BigInt(entriesLba - 1), GPT_AT.lastUsable)
  const backup = Buffer.alloc((entrySectors + 1) * sectorBytes)
  table.entries.copy(backup)
  const second = backup.subarray(entrySectors * sectorBytes).subarray(0, table.headerBytes)
  primary.copy(second)
  second.writeBigUInt64LE(BigInt(lastLba), GPT_AT.myLba)
  second.writeBigUInt64LE(1n, GPT_AT.otherLba)
  second.writeBigUInt64LE(BigInt(entriesLba), GPT_AT.entriesLba)
  seal(primary)
  seal(second)
  growProtectiveMbr(moved, lastLba)
  return accept({ head: moved, backup, offset: entriesLba * sectorBytes })
}

export type GuidTable = NonNullable<ReturnType<typeof parseTable>>

/** Null: a wrong checksum, or entries beyond `head`, the disk's first bytes. */
export function parseTable(head: Buffer, sectorBytes: number) {
  const header = head.subarray(sectorBytes, 2 * sectorBytes)
  if (header.length < sectorBytes) return null
  const headerBytes = header.readUInt32LE(GPT_AT.headerBytes)
  if (!isSealed(header)) return null
  const start = Number(header.readBigUInt64LE(GPT_AT.entriesLba)) * sectorBytes
  const entryBytes = header.readUInt32LE(GPT_AT.entryBytes)
  const length = header.readUInt32LE(GPT_AT.entryCount) * entryBytes
  if (entryBytes < 128 || start + length > head.length) return null
  const entries = head.subarray(start, start + length)
  if (crc32(entries) !== header.readUInt32LE(GPT_AT.entriesCrc)) return null
  const firstFree = Math.ceil((start + length) / sectorBytes)
  const lastUsed = parseLastUsed(entries, entryBytes)
  return { headerBytes, entryBytes, entries, firstFree, lastUsed }
}

function parseLastUsed(entries: Buffer, entryBytes: number) {
  let last = 0
  for (let at = 0; at + entryBytes <= entries.length; at += entryBytes) {
    const isUsed = entries.subarray(at, at + 16).some((byte) => byte !== 0)
    if (isUsed) last = Math.max(last, Number(entries.readBigUInt64LE(at + 40)))
  }
  return last
}

/** `header`: its whole sector. Checks the checksum. */
export function isSealed(header: Buffer): boolean {
  const headerBytes = header.readUInt32LE(GPT_AT.headerBytes)
  if (headerBytes < 92 || headerBytes > header.length) return false
  const plain = Buffer.from(header.subarray(0, headerBytes))
  plain.writeUInt32LE(0, GPT_AT.headerCrc)
  return crc32(plain) === header.readUInt32LE(GPT_AT.headerCrc)
}

/** `header`: just its own length. Sets the checksum. */
export function seal(header: Buffer): void {
  header.writeUInt32LE(0, GPT_AT.headerCrc)
  header.writeUInt32LE(crc32(header), GPT_AT.headerCrc)
}

/** The MBR entry of type 0xEE covers the disk, as far as its 32 bits reach. */
function growProtectiveMbr(head: Buffer, lastLba: number) {
  for (let at = 446; at < 510; at += 16) {
    if (head[at + 4] === 0xee) head.writeUInt32LE(Math.min(lastLba, 0xffffffff), at + 12)
  }
}

// The partitions of a GUID partition table, and a table in which one of them ends elsewhere.

/** UEFI specification 2.10, table 5.6. */
const ENTRY_AT = { type: 0, own: 16, first: 32, last: 40, name: 56, end: 128 } as const

/** `c12a7328-f81f-11d2-ba4b-00a0c93ec93b` as a table spells it. */
export const EFI_SYSTEM = '28732ac11ff8d211ba4b00a0c93ec93b'

/** BIOS boot, PReP boot, and Microsoft's reserved one: no file systems. */
const BOOT_LOADERS: readonly string[] = [
  '4861682149646f6e744e656564454649',
  '382d1a9e12c61643aa268b49521e5a8b',
  '16e3c9e35c0bb84d817df92df00215ae',
]

export interface GptPartition {
  readonly number: number
  /** A GUID in hexadecimal as it is stored. */
  readonly type: string
  readonly own: string
  readonly name: string
  readonly firstSector: number
  readonly lastSector: number
}

/** Numbered from 1; each ends with its last sector. */
export function parseGptPartitions({ entries, entryBytes }: GuidTable): readonly GptPartition[] {
  return Array.from({ length: Math.floor(entries.length / entryBytes) }, (_, at) => {
    const entry = entries.subarray(at * entryBytes, (at + 1) * entryBytes)
    const [name = ''] = entry.toString('utf16le', ENTRY_AT.name, ENTRY_AT.end).split('\0')
    const type = entry.toString('hex', ENTRY_AT.type, ENTRY_AT.own)
    const own = entry.toString('hex', ENTRY_AT.own, ENTRY_AT.first)
    const firstSector = Number(entry.readBigUInt64LE(ENTRY_AT.first))
    const lastSector = Number(entry.readBigUInt64LE(ENTRY_AT.last))
    return { number: at + 1, type, own, name, firstSector, lastSector }
  }).filter(({ lastSector }) => lastSector > 0)
}

/** `type`: in hexadecimal as it is stored. */
export const isBootLoaderType = (type: string): boolean => BOOT_LOADERS.includes(type)

/** A copy, with new checksums. */
export function changeLast(
  head: Buffer,
  table: GuidTable,
  { number, lastSector }: Pick<GptPartition, 'number' | 'lastSector'>,
  sectorBytes: number,
): Buffer {
  const changed = Buffer.from(head)
  const header = changed.subarray(sectorBytes, sectorBytes + table.headerBytes)
  const start = Number(header.readBigUInt64LE(GPT_AT.entriesLba)) * sectorBytes
  const entries = changed.subarray(start, start + table.entries.length)
  entries.writeBigUInt64LE(BigInt(lastSector), (number - 1) * table.entryBytes + ENTRY_AT.last)
  header.writeUInt32LE(crc32(entries), GPT_AT.entriesCrc)
  seal(header)
  return changed
}
