/** Partition tables: the GUID partition table, the MBR, and what writing a whole disk changes in them. */
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

/** A copy, with new checksums. Without a first sector it begins where it began. */
export function changeLast(
  head: Buffer,
  table: GuidTable,
  {
    number,
    firstSector,
    lastSector,
  }: Pick<GptPartition, 'number' | 'lastSector'> & { readonly firstSector?: number },
  sectorBytes: number,
): Buffer {
  const changed = Buffer.from(head)
  const header = changed.subarray(sectorBytes, sectorBytes + table.headerBytes)
  const start = Number(header.readBigUInt64LE(GPT_AT.entriesLba)) * sectorBytes
  const entries = changed.subarray(start, start + table.entries.length)
  const at = (number - 1) * table.entryBytes
  if (firstSector !== undefined) {
    entries.writeBigUInt64LE(BigInt(firstSector), at + ENTRY_AT.first)
  }
  entries.writeBigUInt64LE(BigInt(lastSector), at + ENTRY_AT.last)
  header.writeUInt32LE(crc32(entries), GPT_AT.entriesCrc)
  seal(header)
  return changed
}

const TABLE_AT = 446
const ENTRY_BYTES = 16
const ENTRIES = [1, 2, 3, 4] as const
const AT = { status: 0, firstChs: 1, type: 4, lastChs: 5, first: 8, sectors: 12 } as const
export const PROTECTIVE = 0xee

/** Of DOS, Windows 95 and Linux; they hold logical partitions. */
const EXTENDED: readonly number[] = [0x05, 0x0f, 0x85]

interface DosEntry {
  readonly number: number
  readonly status: number
  readonly type: number
  /** In sectors of the disk. */
  readonly first: number
  readonly sectors: number
}

/** Those in use; null: no MBR. */
export function parseDosTable(head: Buffer): readonly DosEntry[] | null {
  if (!hasDosSignature(head) || isBootSector(head)) return null
  const all = readDosEntries(head)
  const used = all.filter(({ type }) => type !== 0)
  const isTable =
    used.length > 0 && hasDosStates(head) && used.every(({ type }) => type !== PROTECTIVE)
  return isTable ? used : null
}

/** Boot sectors have it as well. */
export const hasDosSignature = (head: Buffer): boolean =>
  head.length >= 512 && head.readUInt16LE(510) === 0xaa55

/** `head` must have the signature; `first` and `sectors` count sectors. */
export const readDosEntries = (head: Buffer): readonly DosEntry[] =>
  ENTRIES.map((number) => {
    const entry = entryOf(head, number)
    return {
      number,
      status: entry.readUInt8(AT.status),
      type: entry.readUInt8(AT.type),
      first: entry.readUInt32LE(AT.first),
      sectors: entry.readUInt32LE(AT.sectors),
    }
  })

/** Kernels ask this of a table: all four entries are active or not, and nothing else. */
export const hasDosStates = (head: Buffer): boolean =>
  readDosEntries(head).every(({ status }) => (status & 0x7f) === 0)

export const isExtendedType = (type: number): boolean => EXTENDED.includes(type)

/** Without a first sector it begins where it began. */
export function changeDosLast(
  head: Buffer,
  number: number,
  sectors: number,
  first?: number,
): Buffer {
  const changed = Buffer.from(head)
  const entry = entryOf(changed, number)
  entry.writeUInt32LE(sectors, AT.sectors)
  entry.set(NO_CHS, AT.lastChs)
  if (first !== undefined) {
    entry.writeUInt32LE(first, AT.first)
    entry.set(NO_CHS, AT.firstChs)
  }
  return changed
}

/** No cylinder, head and sector reach so far: every tool writes this instead. */
const NO_CHS = [0xfe, 0xff, 0xff] as const

const entryOf = (head: Buffer, number: number) => {
  const at = TABLE_AT + (number - 1) * ENTRY_BYTES
  return head.subarray(at, at + ENTRY_BYTES)
}

export const isBootSector = (head: Buffer): boolean =>
  ['NTFS    ', 'EXFAT   '].includes(head.toString('latin1', 3, 11)) ||
  head.toString('latin1', 54, 57) === 'FAT' ||
  head.toString('latin1', 82, 87) === 'FAT32'

export interface Partition {
  /** From 1, as in `/dev/sda1`. */
  readonly number: number
  /** Only a GPT has names. */
  readonly name: string
  /** As in `PARTUUID=`. */
  readonly uuid: string
  /** The type's GUID in lower case, or `0x83` of an MBR. */
  readonly type: string
  /** Bytes. */
  readonly offset: number
  readonly bytes: number
}

type TableDefect = 'no-table' | 'damaged-table'

/** `head`: with the whole table. Skips logical partitions. Refused: no table, or a damaged one. */
export function parsePartitions(
  head: Buffer,
  sectorBytes: number,
): Result<readonly Partition[], TableDefect> {
  if (hasHeader(head, sectorBytes)) {
    const table = parseTable(head, sectorBytes)
    return table === null ? refuse('damaged-table') : accept(listGpt(table, sectorBytes))
  }
  const partitions = hasDosSignature(head) ? listMbr(head, sectorBytes) : []
  return partitions.length === 0 ? refuse('no-table') : accept(partitions)
}

const listGpt = (table: GuidTable, sectorBytes: number): readonly Partition[] =>
  parseGptPartitions(table)
    .filter(({ type }) => type !== UNUSED)
    .map(({ number, name, own, type, firstSector, lastSector }) => ({
      number,
      name,
      uuid: renderGuid(own),
      type: renderGuid(type),
      offset: firstSector * sectorBytes,
      bytes: (lastSector - firstSector + 1) * sectorBytes,
    }))

const UNUSED = '0'.repeat(32)

/** `stored`: hexadecimal; the first three groups have their lowest byte first. */
export const renderGuid = (stored: string): string =>
  stored.replace(/^(..)(..)(..)(..)(..)(..)(..)(..)(.{4})(.{12})$/, '$4$3$2$1-$6$5-$8$7-$9-$10')

const MBR_IDENTITY = 440

/** 8 hexadecimal digits; the names of its partitions begin with it. */
export const readIdentity = (head: Buffer): string =>
  head.readUInt32LE(MBR_IDENTITY).toString(16).padStart(8, '0')

function listMbr(head: Buffer, sectorBytes: number): readonly Partition[] {
  const identity = readIdentity(head)
  return readDosEntries(head)
    .filter(({ type, sectors }) => type !== 0 && sectors !== 0)
    .map(({ number, type, first, sectors }) => ({
      number,
      name: '',
      uuid: `${identity}-0${number}`,
      type: `0x${type.toString(16).padStart(2, '0')}`,
      offset: first * sectorBytes,
      bytes: sectors * sectorBytes,
    }))
}
