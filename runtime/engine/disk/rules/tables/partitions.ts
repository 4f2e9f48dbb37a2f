/** Lists the partitions of a disk from its first bytes: a GUID partition table, else the four entries of an MBR. */
import { hasHeader, parseTable, type GuidTable, parseGptPartitions } from './gpt.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

const TABLE_AT = 446
const ENTRY_BYTES = 16
const ENTRIES = [1, 2, 3, 4] as const
const AT = { status: 0, type: 4, lastChs: 5, first: 8, sectors: 12 } as const
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

export function changeDosLast(head: Buffer, number: number, sectors: number): Buffer {
  const changed = Buffer.from(head)
  const entry = entryOf(changed, number)
  entry.writeUInt32LE(sectors, AT.sectors)
  // No cylinder, head and sector reach so far: every tool writes this instead.
  entry.set([0xfe, 0xff, 0xff], AT.lastChs)
  return changed
}

const entryOf = (head: Buffer, number: number) => {
  const at = TABLE_AT + (number - 1) * ENTRY_BYTES
  return head.subarray(at, at + ENTRY_BYTES)
}

export const isBootSector = (head: Buffer): boolean =>
  ['NTFS    ', 'EXFAT   '].includes(head.toString('latin1', 3, 11)) ||
  head.toString('latin1', 54, 57) === 'FAT' ||
  head.toString('latin1', 82, 87) === 'FAT32'

// Lists the partitions of a disk from its first bytes: a GUID partition table, or an MBR.

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

/**
 * `head`: first bytes of the disk with its whole table. Skips logical partitions of an MBR.
 * Refused: no table, or a damaged one.
 */
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
