/** What would be lost on a disk, as lines below each other. Pure. */
import type { DiskPart } from '#engine/disk/rules/disk.ts'
import { renderLosses } from './rules/disk-offer.ts'
import { layOut, type Column } from '#kit/terminal/text/columns.ts'

const COLUMNS: readonly Column[] = [
  { title: '' },
  { title: '', side: 'right' },
  { title: '' },
  { title: '', least: 8 },
]

/** Lines of at most `width` columns; one line says that nothing was found. */
export const layOutLosses = (
  parts: readonly DiskPart[],
  width: number,
  unicode: boolean,
): readonly string[] =>
  parts.length === 0
    ? ['no partitions or file systems found']
    : layOut(COLUMNS, renderLosses(parts), width, unicode).lines
