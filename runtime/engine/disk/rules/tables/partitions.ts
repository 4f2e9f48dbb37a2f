/** Lists the partitions of a disk from its first bytes: a GUID partition table, or an MBR. */
import { hasDosSignature, readDosEntries } from './dos-table.ts'
import { hasHeader, parseTable, type GuidTable } from './gpt.ts'
import { parseGptPartitions } from './gpt-partitions.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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
