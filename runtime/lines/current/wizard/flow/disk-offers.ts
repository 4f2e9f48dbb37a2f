/** Lists the disks of this machine as rows of the disk screen. Pure. */
import type { SurveyedDisk } from '../../../../core/disk/disk.ts'
import { summariseParts, type DiskOffer } from '../../../../core/flash/disk-offer.ts'
import { renderDevice } from '../../../../core/flash/flash-text.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { renderDiskSize } from '../../../../core/foundation/size.ts'
import { fill } from '../../../../core/texts/text.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { Column } from '../../../../terminal/text/columns.ts'
import type { MenuRow } from '../../../../terminal/prompt/menu.ts'
import type { DiskChoice } from './flow.ts'

const TEXTS = WIZARD_TEXTS.disk

export const DISK_COLUMNS: readonly Column[] = [
  { title: TEXTS.columns.path },
  { title: TEXTS.columns.size, side: 'right' },
  { title: TEXTS.columns.model, least: 14, cut: 'middle', drops: 2 },
  { title: TEXTS.columns.serial, least: 10, cut: 'middle', drops: 1, tells: true },
  { title: TEXTS.columns.bus, drops: 3 },
  { title: TEXTS.columns.holds, least: 22 },
]

export function renderDiskRow({ disk, refusal }: DiskOffer): MenuRow {
  const { path, device, parts } = disk
  const { vendor, model, tran, type, identity } = device
  const cells = [
    path,
    identity.sizeBytes === 0 ? '' : renderDiskSize(identity.sizeBytes),
    [vendor, model].filter(Boolean).join(' ') ||
      (type === 'disk' ? '' : fill(TEXTS.device, { type })),
    identity.serial ?? '',
    tran ?? '',
    refusal === null ? summariseParts(parts) : `(${refusal})`,
  ]
  return { cells: cells.map(printable), refusal }
}

export const chooseDisk = ({ path, device }: SurveyedDisk): DiskChoice => ({
  path,
  identity: device.identity,
  words: renderDevice(device),
})
