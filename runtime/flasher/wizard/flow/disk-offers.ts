/** Lists the disks of this machine as rows of the disk screen. Pure. */
import { renderDiskCells, type DiskOffer } from '../../text/rules/disk-offer.ts'
import { WIZARD_TEXTS } from '../../texts/texts.ts'
import type { Column } from '../../../kit/terminal/text/columns.ts'
import type { MenuRow } from '../../../kit/terminal/prompt/menu.ts'

const TEXTS = WIZARD_TEXTS.disk

export const DISK_COLUMNS: readonly Column[] = [
  { title: TEXTS.columns.path },
  { title: TEXTS.columns.size, side: 'right' },
  { title: TEXTS.columns.model, least: 14, cut: 'middle', drops: 2 },
  { title: TEXTS.columns.serial, least: 10, cut: 'middle', drops: 1, tells: true },
  { title: TEXTS.columns.bus, drops: 3 },
  { title: TEXTS.columns.holds, least: 22 },
]

/** Renders a disk as a row of the list; a row with a refusal cannot be chosen. */
export const renderDiskRow = (offer: DiskOffer): MenuRow => ({
  cells: renderDiskCells(offer),
  refusal: offer.refusal,
})
