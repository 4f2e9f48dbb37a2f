/** Plans the writes that grow the images partition, the last of its disk, to the disk's end. */
import type { DiskWrite } from './planned-write.ts'
import {
  GPT_AT,
  hasHeader,
  isSealed,
  moveBackup,
  parseTable,
  seal,
  type MovedBackup,
  type GuidTable,
} from './gpt.ts'
import { changeLast, parseGptPartitions, type GptPartition } from './gpt-partitions.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** Our media have these sectors; a disk with larger ones shows no table of ours. */
const SECTOR = 512
/** Partitions begin and end at whole MiB. */
const ALIGNMENT = 2048
export const TABLE_BYTES: number = 64 * SECTOR

export interface TableFacts {
  /** The first and the last `TABLE_BYTES` of the disk. */
  readonly head: Buffer
  readonly tail: Buffer
  readonly diskBytes: number
}

export type TableRefusal = 'no-table' | 'no-partition' | 'not-last' | 'disk-too-small'

type GrownPartition = Pick<GptPartition, 'number' | 'name' | 'firstSector' | 'lastSector'>

interface TableGrowth {
  readonly partition: GrownPartition
  readonly writes: readonly DiskWrite[]
}

/**
 * The backup first: one of the two tables is always whole, and planning again gives the rest. The
 * first sector with its boot code stays.
 */
export function planTableGrowth(
  facts: TableFacts,
  name: string,
): Result<TableGrowth, TableRefusal> {
  const head = findTable(facts)
  const table = head === null ? null : parseTable(head, SECTOR)
  if (head === null || table === null) return refuse('no-table')
  const all = parseGptPartitions(table)
  const found = all.find((each) => each.name === name)
  if (found === undefined) return refuse('no-partition')
  if (all.some(({ firstSector }) => firstSector > found.firstSector)) return refuse('not-last')
  const partition = { ...found, lastSector: chooseLast(found, table, facts.diskBytes) }
  const moved = moveBackup(changeLast(head, table, partition, SECTOR), facts.diskBytes, SECTOR)
  if (!moved.ok) return refuse(moved.refusal === 'disk-too-small' ? 'disk-too-small' : 'no-table')
  return accept({ partition, writes: planWrites(facts, moved.value) })
}

/** The disk's first sectors as they are, or as the backup says that they were. */
function findTable({ head, tail, diskBytes }: TableFacts): Buffer | null {
  if (parseTable(head, SECTOR) !== null) return head
  const header = Buffer.from(tail.subarray(-SECTOR))
  if (!hasHeader(header, 0) || !isSealed(header)) return null
  const entriesLba = Number(header.readBigUInt64LE(GPT_AT.entriesLba))
  const start = entriesLba * SECTOR - (diskBytes - tail.length)
  if (start < 0) return null
  const own = header.subarray(0, header.readUInt32LE(GPT_AT.headerBytes))
  own.writeBigUInt64LE(1n, GPT_AT.myLba)
  own.writeBigUInt64LE(BigInt(diskBytes / SECTOR - 1), GPT_AT.otherLba)
  own.writeBigUInt64LE(2n, GPT_AT.entriesLba)
  seal(own)
  return Buffer.concat([head.subarray(0, SECTOR), header, tail.subarray(start, -SECTOR)])
}

/** Never before its present end; less than a MiB more is not worth a write. */
function chooseLast(partition: GrownPartition, table: GuidTable, diskBytes: number): number {
  const entriesLba = diskBytes / SECTOR - 1 - Math.ceil(table.entries.length / SECTOR)
  const last = Math.floor(entriesLba / ALIGNMENT) * ALIGNMENT - 1
  return last - partition.lastSector < ALIGNMENT ? partition.lastSector : last
}

function planWrites(
  facts: TableFacts,
  { head, backup, offset }: MovedBackup,
): readonly DiskWrite[] {
  const header = head.subarray(SECTOR, 2 * SECTOR)
  const start = Number(header.readBigUInt64LE(GPT_AT.entriesLba)) * SECTOR
  const entryBytes = backup.length - SECTOR
  const wanted: readonly DiskWrite[] = [
    { what: 'backup entries', offset, bytes: backup.subarray(0, entryBytes) },
    { what: 'backup header', offset: offset + entryBytes, bytes: backup.subarray(entryBytes) },
    { what: 'entries', offset: start, bytes: head.subarray(start, start + entryBytes) },
    { what: 'header', offset: SECTOR, bytes: header },
  ]
  return wanted.filter(({ offset: at, bytes }) => !readFacts(facts, at, bytes.length).equals(bytes))
}

function readFacts({ head, tail, diskBytes }: TableFacts, offset: number, length: number): Buffer {
  const from = offset - (diskBytes - tail.length)
  return from >= 0 ? tail.subarray(from, from + length) : head.subarray(offset, offset + length)
}
