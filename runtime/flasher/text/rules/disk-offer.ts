/** Decides whether a listed disk can be written, and says why not and what would be lost on it. Pure. */
import {
  nameMaker,
  renderMountPoint,
  renderUse,
  type DiskPart,
  type DiskUse,
  type SurveyedDisk,
} from '#engine/disk/rules/disk.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDiskSize, renderSize } from '#kit/foundation/size.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'
import { renderNumber } from '#kit/foundation/text.ts'
import { decideTargetRefusals, type FlashRefusal } from '#engine/flash/rules/flash-plan.ts'
import { decideSource } from '#engine/capture/rules/capture.ts'

export interface DiskOffer {
  readonly disk: SurveyedDisk
  /** Null: it can be chosen. */
  readonly refusal: string | null
}

/** The reason is a few words. `image` null: its size is not known yet. */
export function offerDisk(
  disk: SurveyedDisk,
  image: Pick<ImageFacts, 'format' | 'virtual'> | null,
): DiskOffer {
  const { path, device } = disk
  const target = { path, exists: true, device }
  const refusals = decideTargetRefusals(image, target, { allowPartition: false })
  return { disk, refusal: renderReason(refusals, device.uses) }
}

/** The most important reason, in the fewest words from which an operator knows what to do. */
function renderReason(refusals: readonly FlashRefusal[], uses: readonly DiskUse[]): string | null {
  if (refusals.length === 0) return null
  return renderUsed(uses) ?? refusals.map(renderShort).join(', ')
}

function renderUsed(uses: readonly DiskUse[]): string | null {
  if (uses.some(({ kind }) => kind === 'running-system')) return 'this system runs from it'
  const points = uses.flatMap((use) => (use.kind === 'mounted' ? [renderMountPoint(use)] : []))
  if (points.length > 0) return `mounted on ${points.join(', ')}`
  const [use] = uses
  return use === undefined ? null : renderUse(use)
}

function renderShort(refusal: FlashRefusal): string {
  if (refusal.why === 'image-too-big') {
    const size = renderSize(refusal.needs)
    return refusal.isDoubtful
      ? `too small: the image seems to need ${size}, or is cut off; compare its checksum`
      : `too small: the image needs ${size}`
  }
  return REASONS[refusal.why] ?? 'not a writable disk'
}

const REASONS: { readonly [Why in FlashRefusal['why']]?: string } = {
  'read-only': 'read-only',
  'target-empty': 'no medium inserted',
}

/** `EFI, 3 more`; `4 partitions` where none has a name. */
export function summariseParts(parts: readonly DiskPart[]): string {
  if (parts.length === 0) return 'nothing known'
  const known = parts.map(({ label, partlabel, fstype }) => label ?? partlabel ?? fstype)
  if (known.every((name) => name === null)) return countParts(parts.length)
  const names = known.map((name) => name ?? '?')
  if (names.length <= 3) return names.join(', ')
  const [first = '', ...more] = names
  return `${first}, ${more.length} more`
}

export const countParts = (count: number): string =>
  `${renderNumber(count)} ${count === 1 ? 'partition' : 'partitions'}`

/** Printable: path, size, model, serial number, bus, then content or reason. */
export function renderDiskCells({ disk, refusal }: DiskOffer): readonly string[] {
  const { path, device, parts } = disk
  const { tran, type, identity } = device
  const maker = Object.values(nameMaker(device)).filter(Boolean).join(' ')
  return [
    path,
    identity.sizeBytes === 0 ? '' : renderDiskSize(identity.sizeBytes),
    maker === '' && type !== 'disk' ? `${type} device` : maker,
    identity.serial ?? '',
    tran ?? '',
    refusal === null ? summariseParts(parts) : `(${refusal})`,
  ].map(printable)
}

/** Device, size, type and name. */
export const renderLosses = (parts: readonly DiskPart[]): readonly (readonly string[])[] =>
  parts.map(({ device, sizeBytes, fstype, label, partlabel }) =>
    [
      device,
      sizeBytes === 0 ? '' : renderSize(sizeBytes),
      fstype ?? 'unknown',
      [...new Set([label, partlabel])].filter((name) => name !== null).join(' / '),
    ].map(printable),
  )

/** The reason is a few words. */
export function offerSource(disk: SurveyedDisk): DiskOffer {
  const { path, device } = disk
  const isFree = decideSource({ path, exists: true, device }, null).ok
  return { disk, refusal: isFree ? null : (renderUsed(device.uses) ?? refuseSize(device)) }
}

const refuseSize = ({ identity }: SurveyedDisk['device']): string =>
  identity.sizeBytes === 0
    ? 'no medium inserted'
    : 'larger than 4 TiB, the most that an image can hold'
