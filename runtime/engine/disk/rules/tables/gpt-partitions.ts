/** The partitions of a GUID partition table, and a table in which one of them ends elsewhere. */
import { crc32 } from 'node:zlib'
import { GPT_AT, seal, type GuidTable } from './gpt.ts'

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
