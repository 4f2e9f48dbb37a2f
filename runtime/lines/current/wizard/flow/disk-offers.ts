/** Lists the disks that can be chosen, why others cannot, and what would be lost on each. Pure. */
import {
  renderMountPoint,
  renderUse,
  type DiskPart,
  type DiskUse,
  type SurveyedDisk,
} from '../../../../core/disk/disk.ts'
import { decideTargetRefusals, type FlashRefusal } from '../../../../core/flash/flash.ts'
import { renderDevice } from '../../../../core/flash/flash-text.ts'
import type { ImageFacts } from '../../../../core/image/image.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { renderDiskSize, renderSize } from '../../../../core/foundation/size.ts'
import { fill, fillCount, pluralOf } from '../../../../core/texts/text.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { Column } from '../../../../terminal/text/columns.ts'
import type { MenuRow } from '../../../../terminal/prompt/menu.ts'
import type { DiskChoice } from './flow.ts'

export interface DiskOffer {
  readonly disk: SurveyedDisk
  /** Why it cannot be chosen; null: it can. */
  readonly refusal: string | null
}

const TEXTS = WIZARD_TEXTS.disk

export const DISK_COLUMNS: readonly Column[] = [
  { title: TEXTS.columns.path },
  { title: TEXTS.columns.size, side: 'right' },
  { title: TEXTS.columns.model, least: 14, cut: 'middle', drops: 2 },
  { title: TEXTS.columns.serial, least: 10, cut: 'middle', drops: 1, tells: true },
  { title: TEXTS.columns.bus, drops: 3 },
  { title: TEXTS.columns.holds, least: 22 },
]

/** `image`: null as long as its size is not known. */
export function offerDisk(disk: SurveyedDisk, image: ImageFacts | null): DiskOffer {
  const { path, device } = disk
  const target = { path, exists: true, device }
  const refusals = decideTargetRefusals(image, target, { allowPartition: false })
  return { disk, refusal: renderReason(refusals, device.uses) }
}

/** The shortest text from which an operator knows what to do; the most important reason counts. */
function renderReason(refusals: readonly FlashRefusal[], uses: readonly DiskUse[]): string | null {
  if (refusals.length === 0) return null
  if (uses.some(({ kind }) => kind === 'running-system')) return TEXTS.refused.system
  const points = uses.flatMap((use) => (use.kind === 'mounted' ? [renderMountPoint(use)] : []))
  if (points.length > 0) return fill(TEXTS.refused.mounted, { points: points.join(', ') })
  const [use] = uses
  if (use !== undefined) return renderUse(use)
  return refusals.map(renderShort).join(', ')
}

function renderShort(refusal: FlashRefusal): string {
  if (refusal.why === 'image-too-big') {
    const size = renderSize(refusal.needs)
    return fill(refusal.isDoubtful ? TEXTS.refused.tooSmallOrCut : TEXTS.refused.tooSmall, { size })
  }
  return REASONS[refusal.why] ?? TEXTS.refused.other
}

const REASONS: { readonly [Why in FlashRefusal['why']]?: string } = {
  'read-only': TEXTS.refused.readOnly,
  'target-empty': TEXTS.refused.noMedium,
}

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
    refusal === null ? summarise(parts) : `(${refusal})`,
  ]
  return { cells: cells.map(printable), refusal }
}

/** `EFI, 3 more`; `4 partitions` where none of them has a name. */
function summarise(parts: readonly DiskPart[]): string {
  if (parts.length === 0) return TEXTS.empty
  const known = parts.map(({ label, partlabel, fstype }) => label ?? partlabel ?? fstype)
  if (known.every((name) => name === null)) return fillCount(TEXTS.partitions, parts.length)
  const names = known.map((name) => name ?? '?')
  if (names.length <= 3) return names.join(', ')
  const [first = '', ...more] = names
  return fill(pluralOf(TEXTS.firstAndMore, more.length), { first, count: more.length })
}

export const chooseDisk = ({ path, device }: SurveyedDisk): DiskChoice => ({
  path,
  identity: device.identity,
  words: renderDevice(device),
})

/** What would be lost, as rows of device, size, type and name. */
export const renderLosses = (parts: readonly DiskPart[]): readonly (readonly string[])[] =>
  parts.map(({ device, sizeBytes, fstype, label, partlabel }) =>
    [
      device,
      sizeBytes === 0 ? '' : renderSize(sizeBytes),
      fstype ?? TEXTS.unknownContent,
      [...new Set([label, partlabel])].filter((name) => name !== null).join(' / '),
    ].map(printable),
  )
