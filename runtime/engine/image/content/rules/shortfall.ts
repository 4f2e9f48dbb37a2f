/** Finds the partitions of an image that end beyond the image's own end: it may have been cut off. */
import { parseDosTable } from '../../../disk/rules/tables/dos-table.ts'
import { parseTableSector } from '../../../disk/rules/tables/gpt.ts'
import { parsePartitions } from '../../../disk/rules/tables/partitions.ts'

interface CutPartition {
  readonly number: number
  /** How many of its bytes the image does not have. */
  readonly missingBytes: number
}

/** An MBR counts in sectors of this size, but for those made for disks of 4096, which then reach less far. */
const DOS_SECTOR = 512

/** `head`: the image's first bytes with its whole table, `imageBytes`: its length. Damaged tables say nothing. */
export function findCutPartitions(head: Buffer, imageBytes: number): readonly CutPartition[] {
  return listPartitions(head).flatMap(({ number, offset, bytes }) => {
    const missingBytes = Math.min(bytes, offset + bytes - imageBytes)
    return missingBytes > 0 ? [{ number, missingBytes }] : []
  })
}

function listPartitions(head: Buffer) {
  const sectorBytes = parseTableSector(head)
  if (sectorBytes !== null) {
    const partitions = parsePartitions(head, sectorBytes)
    return partitions.ok ? partitions.value : []
  }
  return (parseDosTable(head) ?? []).map(({ number, first, sectors }) => ({
    number,
    offset: first * DOS_SECTOR,
    bytes: sectors * DOS_SECTOR,
  }))
}

const MAX_NAMED = 4

/** A warning for people, to stand alone; null: nothing is missing. */
export function renderShortfall(cut: readonly CutPartition[]): string | null {
  if (cut.length === 0) return null
  const named = cut.slice(0, MAX_NAMED).map(renderPartition)
  const more = cut.length > MAX_NAMED ? [`and ${cut.length - MAX_NAMED} more`] : []
  const parts = [...named, ...more].join(', ')
  return `by its own partition table the image is cut off: ${parts}; if it does not end early on purpose, compare its checksum`
}

const renderPartition = ({ number, missingBytes }: CutPartition) =>
  `partition ${number} ends beyond the end of the image (${missingBytes} bytes are missing)`
