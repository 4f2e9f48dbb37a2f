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
import type { Column } from '../../../../terminal/text/columns.ts'
import type { MenuRow } from '../../../../terminal/prompt/menu.ts'
import type { DiskChoice } from './flow.ts'

export interface DiskOffer {
  readonly disk: SurveyedDisk
  /** Why it cannot be chosen; null: it can. */
  readonly refusal: string | null
}

export const DISK_COLUMNS: readonly Column[] = [
  { title: 'Path' },
  { title: 'Size', side: 'right' },
  { title: 'Model', least: 14, cut: 'middle', drops: 2 },
  { title: 'Serial', least: 10, cut: 'middle', drops: 1, tells: true },
  { title: 'Bus', drops: 3 },
  { title: 'On it now', least: 22 },
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
  if (uses.some(({ kind }) => kind === 'running-system')) return 'holds this system'
  const points = uses.flatMap((use) => (use.kind === 'mounted' ? [renderMountPoint(use)] : []))
  if (points.length > 0) return `mounted on ${points.join(', ')}`
  const [use] = uses
  if (use !== undefined) return renderUse(use)
  return refusals.map(renderShort).join(', ')
}

function renderShort(refusal: FlashRefusal): string {
  if (refusal.why === 'image-too-big') {
    const size = renderSize(refusal.needs)
    return refusal.isDoubtful
      ? `too small: its last bytes say that the image needs ${size}; cut off? compare its checksum`
      : `too small: the image needs ${size}`
  }
  return REASONS[refusal.why] ?? 'not a disk that can be written'
}

const REASONS: { readonly [Why in FlashRefusal['why']]?: string } = {
  'read-only': 'read-only',
  'target-empty': 'no medium in it',
}

export function renderDiskRow({ disk, refusal }: DiskOffer): MenuRow {
  const { path, device, parts } = disk
  const { vendor, model, tran, type, identity } = device
  const cells = [
    path,
    identity.sizeBytes === 0 ? '' : renderDiskSize(identity.sizeBytes),
    [vendor, model].filter(Boolean).join(' ') || (type === 'disk' ? '' : `${type} device`),
    identity.serial ?? '',
    tran ?? '',
    refusal === null ? summarise(parts) : `(${refusal})`,
  ]
  return { cells: cells.map(printable), refusal }
}

/** `EFI, 3 more`; `4 partitions` where none of them has a name. */
function summarise(parts: readonly DiskPart[]): string {
  if (parts.length === 0) return 'nothing known'
  const known = parts.map(({ label, partlabel, fstype }) => label ?? partlabel ?? fstype)
  if (known.every((name) => name === null))
    return parts.length === 1 ? '1 partition' : `${parts.length} partitions`
  const names = known.map((name) => name ?? '?')
  const [first, ...more] = names
  return names.length <= 3 ? names.join(', ') : `${first}, ${more.length} more`
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
      fstype ?? 'unknown',
      [...new Set([label, partlabel])].filter((name) => name !== null).join(' / '),
    ].map(printable),
  )
