/** Says in words what is flashed, how far it is, and how it ended. Pure. */
import { nameMaker, type TargetDevice } from '#engine/disk/rules/disk.ts'
import {
  decideNotes,
  type FlashEvent,
  type FlashOptions,
  GROWING,
  type WriteProgress,
} from '#engine/flash/rules/flash-plan.ts'
import { renderSafeUrl } from '#kit/net/rules/image-location.ts'
import type { ImageFacts, VirtualSize } from '#engine/image/rules/image.ts'
import {
  renderDiskSize,
  renderSize,
  renderDuration,
  renderExactSize,
  renderPartOf,
} from '#kit/foundation/size.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'

/** Not printable yet: `debian.img.zst: img.zst, 412 MB, 4.00 GB unpacked`. */
export function renderImage(image: ImageFacts): string {
  const { format, sizeBytes, virtual } = image
  const facts = [
    format ?? 'unknown format',
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
export function renderDevice(device: TargetDevice): string {
  const { tran, identity, type } = device
  const maker = Object.values(nameMaker(device)).filter(Boolean).join(' ')
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

// Says how far a flash is, and how it ended, in the words that every screen for people uses. Pure.

const DELTA = {
  compared: 'writing what differs',
  'mostly-different': 'writing the whole image, as the disk differs too much',
  'no-index': 'writing the whole image, as it has no index',
  untrusted: 'writing the whole image, as the digest of its index is unknown',
} as const

const WHOLE = {
  'mostly-different': 'The whole image was written, because the disk differed too much.',
  'no-index': 'The whole image was written, because it has no index to compare with.',
  untrusted: 'The whole image was written, because the digest of its index is unknown.',
} as const

interface ShownProgress {
  readonly phase: string
  readonly progress: WriteProgress | null
}

const PHASES: { readonly [Name in FlashEvent['event']]?: string } = {
  started: 'preparing the disk ...',
  provisioning: 'writing the first-boot configuration ...',
  synced: 'loading the new partition table ...',
  partprobed: 'done',
}

export function nextProgress(event: FlashEvent, { phase, progress }: ShownProgress): ShownProgress {
  if (event.event !== 'writing') return { phase: PHASES[event.event] ?? phase, progress }
  const isNew = event.phase !== progress?.phase
  return { phase: isNew ? renderPhase(event, progress) : phase, progress: event }
}

/** `before`: where the phase before it ended. */
function renderPhase(
  { phase, note, total_bytes, delta }: WriteProgress,
  before: WriteProgress | null,
): string {
  if (note === GROWING) return 'growing the last partition and its file system ...'
  if (phase === 'write') return delta === undefined ? 'writing' : DELTA[delta]
  const isLess = total_bytes !== null && total_bytes < (before?.bytes_written ?? 0)
  return isLess
    ? 'reading back what was written, samples of its zeros'
    : 'reading back what was written'
}

export function renderWaiting(phase: string, progress: WriteProgress | null): string {
  const bottleneck = progress?.bottleneck ?? null
  if (bottleneck === null) return phase
  return `${phase}, waiting for the ${bottleneck}`
}

/** `1.2 of 3.4 GB of the image read, 12 s so far`. `storedBytes` null: unknown. */
export function renderReadSoFar(
  progress: WriteProgress | null,
  storedBytes: number | null,
  time: string,
): string {
  if (progress === null || progress.phase !== 'write') return `${time} so far`
  const { bytes_read: read } = progress
  const amount = storedBytes === null ? renderSize(read) : renderPartOf(read, storedBytes)
  return `${amount} of the image read, ${time} so far`
}

/** Null: only what differs was written, or all was wanted. */
export const renderWhole = ({
  delta = null,
}: Pick<Extract<FlashOutcome, { kind: 'done' }>, 'delta'>): string | null =>
  delta === null || delta === 'compared' ? null : WHOLE[delta]

/** Empty where the flash did not succeed. */
export function renderSuccess(end: FlashOutcome | null): string {
  if (end?.kind !== 'done') return ''
  const { plan, bytesWritten, bytesKept, seconds, verified } = end
  const written = `Done. Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${verified ? '' : 'not '}verified.`
  const whole = renderWhole(end)
  return [
    written,
    ...(bytesKept ? [`${renderExactSize(bytesKept)} of it was already on the disk.`] : []),
    ...(whole === null ? [] : [whole]),
    ...(plan.sha256 === null ? [] : ['The checksum of the image matches.']),
    ...(end.warnings ?? []).map((warning) => `Warning: ${warning}.`),
  ].join(' ')
}
