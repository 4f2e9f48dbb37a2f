/** Reads the logical partitions of an MBR: a chain of small tables in its extended partition. */
import {
  hasDosSignature,
  isExtendedType,
  readDosEntries,
} from '#engine/disk/rules/tables/dos-table.ts'
import type { Partition } from '#engine/disk/rules/tables/partitions.ts'
import type { Range } from '#engine/disk/rules/extents.ts'

/** More than any tool makes; a chain that leads back to itself ends here. */
export const MAX_LOGICAL = 128
/** The kernel's number of the first one. */
const FIRST_NUMBER = 5

/** A logical partition; its number is its place in the chain. */
export type Unnumbered = Omit<Partition, 'number' | 'uuid'>

interface Link {
  /** Null: this table has none. */
  readonly partition: Unnumbered | null
  /** Where the next table lies; null: this is the last one. */
  readonly next: number | null
}

/**
 * `sector`: the table at `at`. What does not lie in the extended partition is left out, and ends the
 * chain where it is a link.
 */
export function parseLogicalTable(
  sector: Buffer,
  at: number,
  { extended, sectorBytes }: { readonly extended: Range; readonly sectorBytes: number },
): Link {
  if (!hasDosSignature(sector)) return { partition: null, next: null }
  const end = extended.offset + extended.bytes
  const isInside = ({ offset, bytes }: Range) => offset >= extended.offset && offset + bytes <= end
  const used = readDosEntries(sector).filter(({ type, sectors }) => type !== 0 && sectors !== 0)
  const data = used.find(({ type }) => !isExtendedType(type))
  const link = used.find(({ type }) => isExtendedType(type))
  const next = link === undefined ? null : extended.offset + link.first * sectorBytes
  const partition = data && {
    name: '',
    type: `0x${data.type.toString(16).padStart(2, '0')}`,
    offset: at + data.first * sectorBytes,
    bytes: data.sectors * sectorBytes,
  }
  return {
    partition: partition !== undefined && isInside(partition) ? partition : null,
    next: next !== null && isInside({ offset: next, bytes: sectorBytes }) ? next : null,
  }
}

/**
 * Numbers and names them as the kernel does. `identity` is that of the disk's MBR, 8 hexadecimal
 * digits.
 */
export const numberLogical = (
  found: readonly Unnumbered[],
  identity: string,
): readonly Partition[] =>
  found.map((partition, at) => {
    const number = FIRST_NUMBER + at
    return { ...partition, number, uuid: `${identity}-${number.toString(16).padStart(2, '0')}` }
  })
