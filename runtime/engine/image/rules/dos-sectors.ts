/** Finds out for which sectors an MBR was made: it counts in sectors, and does not say in which. */
import { isExtendedType, parseDosTable } from '#engine/disk/rules/tables/dos-table.ts'
import { parseTableSector } from '#engine/disk/rules/tables/gpt.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { hasFileSystem, SIGNATURE_BYTES } from '#engine/disk/rules/growable.ts'

/** Nearly all images are made for these; with other sectors every address is another one. */
const USUAL = 512

interface SectorDisk {
  readonly sizeBytes: number
  readonly sectorBytes: number
}

/** Its place on this disk, and on one of the usual sectors. */
interface DosRange {
  readonly number: number
  readonly here: Range
  readonly usual: Range
}

export function listDosRanges(head: Buffer, sectorBytes: number): readonly DosRange[] {
  if (sectorBytes === USUAL || parseTableSector(head) !== null) return []
  return (parseDosTable(head) ?? []).map(({ number, first, sectors, type }) => {
    const at = (bytes: number): Range => ({
      offset: first * bytes,
      bytes: isExtendedType(type) ? 0 : Math.min(SIGNATURE_BYTES, sectors * bytes),
    })
    return { number, here: at(sectorBytes), usual: at(USUAL) }
  })
}

/** By the table alone; null: it can be meant for this disk. */
export function findBeyond(head: Buffer, disk: SectorDisk): string | null {
  if (disk.sectorBytes === USUAL || parseTableSector(head) !== null) return null
  const beyond = (parseDosTable(head) ?? []).find(
    ({ first, sectors }) => (first + sectors) * disk.sectorBytes > disk.sizeBytes,
  )
  return beyond === undefined
    ? null
    : `with its ${disk.sectorBytes}-byte sectors, partition ${beyond.number} would end beyond the disk; the image is made for ${USUAL}-byte sectors, or for a larger disk`
}

export type SectorVerdict =
  | { readonly kind: 'fits' }
  | { readonly kind: 'other'; readonly reason: string }
  /** No file system is known at either place. */
  | { readonly kind: 'unseen' }

/** Null: not read. */
type ReadSectors = (range: Range) => Buffer | null

export function decideSectors(ranges: readonly DosRange[], seen: ReadSectors): SectorVerdict {
  if (ranges.length === 0) return { kind: 'fits' }
  const isThere = (range: Range) => {
    const first = range.bytes === 0 ? null : seen(range)
    return first !== null && hasFileSystem(first)
  }
  if (ranges.some(({ here }) => isThere(here))) return { kind: 'fits' }
  const other = ranges.find(({ usual }) => isThere(usual))
  if (other === undefined) return { kind: 'unseen' }
  const reason = `it is made for disks with ${USUAL}-byte sectors: the file system of partition ${other.number} begins at byte ${other.usual.offset}, where this disk would look for it at byte ${other.here.offset}`
  return { kind: 'other', reason }
}

export const renderUnseen = (sectorBytes: number): string =>
  `its MBR does not say for which sectors it is made, and no file system shows it: most images are made for ${USUAL}-byte sectors, but this disk has ${sectorBytes}-byte sectors`
