/** Describes an image, a disk and the checks between them, each in one line. */
import type { TargetDevice } from '#engine/disk/rules/disk.ts'
import { decideNotes, type FlashOptions } from '#engine/flash/rules/flash.ts'
import { renderSafeUrl } from '#kit/net/rules/image-location.ts'
import type { ImageFacts, VirtualSize } from '#engine/image/rules/image.ts'
import { renderDiskSize, renderSize } from '#kit/foundation/size.ts'

/** Not printable yet: `debian.img.zst: img.zst, 412 MB, 4.00 GB unpacked`. */
export function renderImage(image: ImageFacts): string {
  const { format, sizeBytes, virtual } = image
  const facts = [
    format ?? 'no format that flasher writes',
    ...(sizeBytes === null ? [] : [renderSize(sizeBytes)]),
    ...renderUnpacked(virtual, sizeBytes),
  ]
  return `${renderImageName(image)}: ${facts.join(', ')}`
}

/** Lines about the chosen image and its check; not printable yet. `found` null: not opened yet. */
export function renderSource(
  { name, location }: { readonly name: string; readonly location: string },
  found: {
    readonly image: ImageFacts
    readonly options: Pick<FlashOptions, 'sha256' | 'verify'>
  } | null,
): readonly string[] {
  // An address may hold a password.
  const address = location.includes('://') ? renderSafeUrl(location) : null
  const from = address === null ? [] : [`from ${address}`]
  if (found === null) return [name, ...from]
  const { image, options } = found
  return [renderImage({ ...image, name }), ...from, renderChecks(options), ...decideNotes(image)]
}

export const renderImageName = ({ name }: Pick<ImageFacts, 'name'>): string =>
  name === '-' ? 'standard input' : name

function renderUnpacked(virtual: VirtualSize, sizeBytes: number | null): readonly string[] {
  if (virtual.kind === 'unknown' || virtual.bytes === sizeBytes) return []
  return [`${virtual.kind === 'exact' ? '' : 'at least '}${renderSize(virtual.bytes)} unpacked`]
}

/** `ATA Samsung SSD 980, serial S5GX, 500 GB, sata`. */
export function renderDevice({ vendor, model, tran, identity, type }: TargetDevice): string {
  const maker = [vendor, model].filter(Boolean).join(' ')
  return [
    maker === '' ? (NAMELESS[type] ?? `${type} without a model name`) : maker,
    identity.serial === null ? 'no serial number' : `serial ${identity.serial}`,
    renderDiskSize(identity.sizeBytes),
    ...(tran === null ? [] : [tran]),
  ].join(', ')
}

const NAMELESS: Readonly<Record<string, string>> = {
  disk: 'no model name',
  loop: 'loop device',
  part: 'partition',
}

export const renderChecks = ({ sha256, verify }: Pick<FlashOptions, 'sha256' | 'verify'>): string =>
  [
    sha256 === null ? 'no checksum available' : `SHA-256 ${sha256.slice(0, 12)}…`,
    VERIFY_TEXTS[verify],
  ].join(', ')

const VERIFY_TEXTS = {
  none: 'nothing is read back',
  data: 'everything written is read back',
  all: 'the whole image is read back, zeros included',
} as const satisfies Record<FlashOptions['verify'], string>
