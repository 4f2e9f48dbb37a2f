/** Decides whether a listed disk can be written, and says why not and what would be lost on it. Pure. */
import {
  renderMountPoint,
  renderUse,
  type DiskPart,
  type DiskUse,
  type SurveyedDisk,
} from '../disk/disk.ts'
import { printable } from '../foundation/printable.ts'
import { renderSize } from '../foundation/size.ts'
import type { ImageFacts } from '../image/image.ts'
import { decideTargetRefusals, type FlashRefusal } from './flash.ts'

export interface DiskOffer {
  readonly disk: SurveyedDisk
  /** Why it cannot be chosen; null: it can. */
  readonly refusal: string | null
}

/** `image`: null as long as its size is not known. */
export function offerDisk(
  disk: SurveyedDisk,
  image: Pick<ImageFacts, 'format' | 'virtual'> | null,
): DiskOffer {
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

/** `EFI, 3 more`; `4 partitions` where none of them has a name. */
export function summariseParts(parts: readonly DiskPart[]): string {
  if (parts.length === 0) return 'nothing known'
  const known = parts.map(({ label, partlabel, fstype }) => label ?? partlabel ?? fstype)
  if (known.every((name) => name === null))
    return parts.length === 1 ? '1 partition' : `${parts.length} partitions`
  const names = known.map((name) => name ?? '?')
  const [first, ...more] = names
  return names.length <= 3 ? names.join(', ') : `${first}, ${more.length} more`
}

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
