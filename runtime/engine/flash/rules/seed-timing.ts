/** Decides whether what `--provision` writes can be written before the disk can boot, from its table as it will be. */
import {
  hasDosSignature,
  isExtendedType,
  parseDosTable,
  PROTECTIVE,
  readDosEntries,
} from '#engine/disk/rules/tables/dos-table.ts'
import { hasHeader, parseTable } from '#engine/disk/rules/tables/gpt.ts'
import { parsePartitions, type Partition } from '#engine/disk/rules/tables/partitions.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import {
  FIRST_BYTES,
  locateBackup,
  locateEnds,
  planEnds,
  splitEnds,
  type EndContents,
  type EndPiece,
} from '#engine/disk/rules/disk-end.ts'

interface EarlySeed {
  /** To be written before, as partitions reach into them: all but the sectors of the tables. */
  readonly early: readonly EndPiece[]
  /** Written when all the rest is on the medium, in this order. */
  readonly held: readonly EndPiece[]
  readonly partitions: readonly Partition[]
  /** Holds logical partitions; null: there is none. */
  readonly extended: Range | null
}

interface SeedDisk {
  readonly sizeBytes: number
  readonly sectorBytes: number
}

/**
 * Null where nothing can be mounted until the ends are written: there is no table, or none that is
 * read here as the kernel reads it, or a partition lies where the table is.
 */
export function planEarlySeed(disk: SeedDisk, ends: EndContents): EarlySeed | null {
  const { head } = ends
  const { sizeBytes, sectorBytes } = disk
  const listed = listPartitions(head, sectorBytes)
  if (listed === null) return null
  const { all, tableEnd } = listed
  const backup = locateBackup(sizeBytes, ends)
  const tailTo = Math.floor(backup / sectorBytes) * sectorBytes
  const isFree = ({ offset, bytes }: Range) => offset >= tableEnd && offset + bytes <= tailTo
  if (all.length === 0 || !all.every(isFree)) return null
  const { headBytes, tailStart } = locateEnds(sizeBytes)
  const begin = Math.min(...all.map(({ offset }) => offset))
  const end = Math.max(...all.map(({ offset, bytes }) => offset + bytes))
  const { early, held } = splitEnds(planEnds(sizeBytes, ends), {
    headFrom: Math.min(begin, headBytes),
    tailTo: end > tailStart ? tailTo : tailStart,
  })
  const [extended = null] = all.filter(isExtended)
  return { early, held, partitions: all.filter((one) => !isExtended(one)), extended }
}

const isExtended = ({ type }: Partition) => isExtendedType(Number(type))

interface Listed {
  readonly all: readonly Partition[]
  /** Where the first partition may begin. */
  readonly tableEnd: number
}

function listPartitions(head: Buffer, sectorBytes: number): Listed | null {
  if (!hasDosSignature(head)) return null
  const isGpt = hasHeader(head, sectorBytes)
  // The kernel reads a GPT only where the MBR before it says so.
  if (isGpt !== readDosEntries(head).some(({ type }) => type === PROTECTIVE)) return null
  if (!isGpt && parseDosTable(head) === null) return null
  const partitions = parsePartitions(head, sectorBytes)
  if (!partitions.ok) return null
  const firstFree = isGpt ? (parseTable(head, sectorBytes)?.firstFree ?? 0) : 1
  return { all: partitions.value, tableEnd: Math.max(FIRST_BYTES, firstFree * sectorBytes) }
}
