/** Lists the partitions of a disk from its first bytes: a GUID partition table, or an MBR. */
import { hasHeader, parseTable } from './gpt.ts'
import { accept, refuse, type Result } from '../foundation/result.ts'

export interface Partition {
  /** From 1, as in `/dev/sda1`. */
  readonly number: number
  /** Only a GPT has names. */
  readonly name: string
  /** As the kernel and `PARTUUID=` spell it. */
  readonly uuid: string
  /** The type's GUID in lower case, or `0x83` of an MBR. */
  readonly type: string
  /** Both in bytes. */
  readonly offset: number
  readonly bytes: number
}

type TableDefect = 'no-table' | 'damaged-table'

/** `head`: the first bytes of the disk, at least the whole table. Logical partitions of an MBR are left out. */
export function parsePartitions(
  head: Buffer,
  sectorBytes: number,
): Result<readonly Partition[], TableDefect> {
  if (hasHeader(head, sectorBytes)) {
    const table = parseTable(head, sectorBytes)
    return table === null
      ? refuse('damaged-table')
      : accept(parseEntries(table.entries, table.entryBytes, sectorBytes))
  }
  const isMbr = head.length >= 512 && head.readUInt16LE(510) === 0xaa55
  const partitions = isMbr ? parseMbr(head, sectorBytes) : []
  return partitions.length === 0 ? refuse('no-table') : accept(partitions)
}

/** Offsets in an entry, UEFI specification 2.10, table 5.6. */
const ENTRY_AT = { type: 0, uuid: 16, first: 32, last: 40, name: 56, end: 128 } as const

function parseEntries(entries: Buffer, entryBytes: number, sectorBytes: number) {
  const partitions: Partition[] = []
  for (let at = 0, number = 1; at + entryBytes <= entries.length; at += entryBytes, number += 1) {
    const entry = entries.subarray(at, at + ENTRY_AT.end)
    if (entry.subarray(0, 16).every((byte) => byte === 0)) continue
    const first = Number(entry.readBigUInt64LE(ENTRY_AT.first))
    const last = Number(entry.readBigUInt64LE(ENTRY_AT.last))
    partitions.push({
      number,
      name: entry.subarray(ENTRY_AT.name).toString('utf16le').split('\0', 1)[0] ?? '',
      uuid: renderGuid(entry.subarray(ENTRY_AT.uuid, ENTRY_AT.first)),
      type: renderGuid(entry.subarray(ENTRY_AT.type, ENTRY_AT.uuid)),
      offset: first * sectorBytes,
      bytes: (last - first + 1) * sectorBytes,
    })
  }
  return partitions
}

/** The first three groups are stored with their lowest byte first. */
function renderGuid(bytes: Buffer): string {
  const groups = [
    bytes.subarray(0, 4).toReversed(),
    bytes.subarray(4, 6).toReversed(),
    bytes.subarray(6, 8).toReversed(),
    bytes.subarray(8, 10),
    bytes.subarray(10, 16),
  ]
  return groups.map((group) => Buffer.from(group).toString('hex')).join('-')
}

/** The four entries of the first sector. */
const MBR_ENTRIES = 446
const MBR_IDENTITY = 440

function parseMbr(head: Buffer, sectorBytes: number): readonly Partition[] {
  const identity = head.readUInt32LE(MBR_IDENTITY).toString(16).padStart(8, '0')
  return [1, 2, 3, 4].flatMap((number) => {
    const at = MBR_ENTRIES + 16 * (number - 1)
    const type = head[at + 4] ?? 0
    const bytes = head.readUInt32LE(at + 12) * sectorBytes
    if (type === 0 || bytes === 0) return []
    const shown = `0x${type.toString(16).padStart(2, '0')}`
    return [
      {
        number,
        name: '',
        uuid: `${identity}-0${number}`,
        type: shown,
        offset: head.readUInt32LE(at + 8) * sectorBytes,
        bytes,
      },
    ]
  })
}
