/** What flash and capture report: a document with --json, else lines for people. Pure. */
import type { TargetFacts } from '#engine/disk/rules/disk.ts'
import { decideCleared } from '#engine/disk/rules/extents.ts'
import {
  decideNotes,
  type FlashEvent,
  type FlashFindings,
  type FlashPlan,
  type FlashRefusal,
  renderReasons,
} from '#engine/flash/rules/flash-plan.ts'
import {
  renderChecks,
  renderDevice,
  renderImage,
  renderImageName,
  renderWhole,
} from '#flasher/text/rules/flash-text.ts'
import { exactBytes, leastBytes } from '#engine/image/rules/image.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import { renderDuration, renderExactSize, renderSize } from '#kit/foundation/size.ts'
import type { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Provisioning } from '#engine/flash/rules/provisioning.ts'
import type { DocumentFields } from './exit-codes.ts'
import type { CapturedPart } from '#engine/capture/rules/capture.ts'
import type { FoundFile } from '#engine/capture/rules/identity.ts'

export interface ReportedFindings extends FlashFindings {
  readonly dryRun: boolean
  readonly provisioning: Provisioning
}

/** Numbers are exit codes. */
export interface FlashDocument {
  found(all: readonly ReportedFindings[]): void
  refuse(refused: Fault): number
  concludeDryRun(): number
  begin(): void
  event(event: FlashEvent, plan: FlashPlan): void
  end(end: FlashOutcome, disk: string): void
  conclude(ends: readonly FlashOutcome[]): number
}

const HINTS: { readonly [Why in FlashRefusal['why']]?: string } = {
  mounted: 'Unmount them first, or choose another disk: "flasher list disks".',
  'in-use': 'Stop the programs that use it, or choose another disk: "flasher list disks".',
  'target-missing': '"flasher list disks" shows the disks.',
  'not-a-block-device': '"flasher list disks" shows the disks.',
  'image-too-big': 'Choose a larger disk: "flasher list disks".',
  'cannot-grow': 'Flash without --grow.',
  'same-disk': 'Name each disk once.',
}

/** The image's last bytes, which give its size, may not be its last. */
const MAYBE_TRUNCATED =
  'The image may be truncated: compare its checksum. If it is complete, choose a larger disk: "flasher list disks".'

export const hintAgainst = ({
  imageHint = null,
  refusals,
}: Pick<ReportedFindings, 'imageHint' | 'refusals'>): string | undefined =>
  imageHint ?? refusals.map(hintOf).find((hint) => hint !== undefined)

const hintOf = (refusal: FlashRefusal): string | undefined =>
  refusal.why === 'image-too-big' && refusal.isDoubtful ? MAYBE_TRUNCATED : HINTS[refusal.why]

/** Behind `schema_version` and `command`; our own fields come last in each object. */
export function findingsFields(findings: ReportedFindings): DocumentFields {
  const errors = renderReasons(findings)
  const { dryRun, image, target, options, provisioning, refusals } = findings
  return {
    dry_run: dryRun,
    plan: {
      image: {
        path: image.path,
        url: image.url,
        format: image.format,
        size_bytes: image.sizeBytes,
        virtual_size_bytes: exactBytes(image.virtual),
      },
      target: targetFields(target),
      provisioning_mode: provisioning.mode,
      notes: decideNotes(image),
      verify: options.verify,
      sha256: options.sha256,
      ...(options.grow ? { grow: true } : {}),
      ...clearedFields(findings),
    },
    errors,
    ok: errors.length === 0,
    ...(refusals.length === 0 ? {} : { refusals }),
  }
}

/** What lies behind the image in the disk's last MiB. */
const findCleared = ({ image, target: { device }, refusals }: ReportedFindings) =>
  device === null || refusals.length > 0
    ? null
    : decideCleared(leastBytes(image.virtual), device.identity.sizeBytes)

function clearedFields(findings: ReportedFindings): DocumentFields {
  const cleared = findCleared(findings)
  return cleared === null ? {} : { clears: { offset: cleared.offset, size_bytes: cleared.bytes } }
}

function targetFields({ path, exists, device }: TargetFacts): DocumentFields {
  const uses = device?.uses ?? []
  const known = {
    path,
    exists,
    is_block_device: device !== null,
    size_bytes: device?.identity.sizeBytes ?? null,
    mountpoints: uses.flatMap((use) => (use.kind === 'mounted' ? [use.at] : [])),
  }
  if (device === null) return known
  const { node, type, vendor, model, tran, identity } = device
  return { ...known, node, type, vendor, model, tran, serial: identity.serial, wwn: identity.wwn }
}

export function renderFindings(findings: ReportedFindings): string {
  const { image, target, options, provisioning } = findings
  const rows: readonly (readonly [string, string])[] = [
    ['Image', renderImage(image)],
    ['Target', describeTarget(target)],
    ['Checks', renderChecks(options)],
    ...(options.grow
      ? [['Grow', 'the last partition and its file system fill the disk'] as const]
      : []),
    ...(findCleared(findings) === null ? [] : [['Clears', LAST_MIB] as const]),
    ...(provisioning.mode === 'none' ? [] : [['Then', describeStep(provisioning)] as const]),
    ...decideNotes(image).map((note) => ['Note', note] as const),
    ...renderReasons(findings).map((error) => ['Refused', error] as const),
  ]
  return rows.map(([name, text]) => `${name.padEnd(9)}${printable(text)}\n`).join('')
}

const LAST_MIB = 'the last MiB of the disk, with remains of an old RAID, ZFS or LVM'

export const renderLoss = ({ image, target }: ReportedFindings): string =>
  `\n${printable(`Writing ${renderImageName(image)} to ${describeTarget(target)}`)}\n` +
  `${printable(`Everything on ${target.path} will be lost.`)}\n`

/** `/dev/sdb: ATA Samsung SSD 980, serial S5GX, 500 GB, sata` */
function describeTarget({ path, exists, device }: TargetFacts): string {
  if (!exists) return `${path} (does not exist)`
  if (device === null) return `${path} (not a block device)`
  const { node } = device
  return `${node === path ? path : `${path} (${node})`}: ${renderDevice(device)}`
}

const describeStep = (step: Exclude<Provisioning, { mode: 'none' }>) =>
  step.mode === 'cloud-init'
    ? `cloud-init seed with ${step.userData}`
    : `cijoe workflow ${step.workflow}`

type DoneFlash = Extract<FlashOutcome, { kind: 'done' }>

export function renderDone(done: DoneFlash): string {
  const { plan, bytesWritten, bytesKept, seconds, verified, warnings = [] } = done
  const readBack = verified ? 'verified' : 'not verified'
  const why = renderWhole(done)
  const kept = bytesKept ? ` ${renderExactSize(bytesKept)} of it was already on the disk.` : ''
  return `Done. Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${readBack}.${kept}${why === null ? '' : ` ${why}`}\n${warnings.map((words) => `Warning: ${words}\n`).join('')}`
}

export const resultFields = ({
  plan,
  bytesWritten,
  bytesKept = null,
  delta = null,
  seconds,
  verified,
  warnings = [],
}: DoneFlash): DocumentFields => ({
  result: {
    bytes_written: bytesWritten,
    ...(bytesKept === null ? {} : { bytes_kept: bytesKept }),
    ...(delta === null ? {} : { delta }),
    seconds: Math.round(seconds * 1000) / 1000,
    verified,
    ...(warnings.length === 0 ? {} : { warnings }),
    sha256: plan.sha256,
  },
})

// Earlier line: what `flasher capture` says of a disk, as text and as fields of the document.

export interface CaptureFindings {
  readonly source: string
  readonly output: string
  readonly sizeBytes: number
  readonly usedBytes: number
  readonly generalize: boolean
  readonly parts: readonly (CapturedPart & { readonly files: readonly FoundFile[] | null })[]
  readonly warnings: readonly string[]
}

const listPaths = (parts: CaptureFindings['parts']) =>
  parts.flatMap(({ files }) => (files ?? []).map(({ path }) => path))

export const captureFields = (findings: CaptureFindings): DocumentFields => ({
  source: findings.source,
  output: findings.output,
  disk_size_bytes: findings.sizeBytes,
  used_bytes: findings.usedBytes,
  parts: findings.parts.map(({ number, type, bytes, usedBytes, whole }) => ({
    number,
    type,
    size_bytes: bytes,
    used_bytes: usedBytes,
    whole,
  })),
  generalized: findings.generalize ? listPaths(findings.parts) : null,
  warnings: findings.warnings,
})

export function renderCapture(findings: CaptureFindings): string {
  const { source, sizeBytes, usedBytes, parts, generalize } = findings
  const lines = parts.map((part) => printable(`  ${renderPart(part)}`))
  const cleared = generalize
    ? listPaths(parts).map((path) => `  cleared in the image: ${path}`)
    : []
  return [
    `${source}: ${renderExactSize(sizeBytes)}, ${renderSize(usedBytes)} to read`,
    ...lines,
    ...cleared.map(printable),
    '',
  ].join('\n')
}

function renderPart({ number, type, bytes, usedBytes, whole }: CapturedPart): string {
  const what = `${number === 0 ? 'no partitions' : `partition ${number}`}: ${type ?? 'unknown'}`
  return whole === null
    ? `${what}, ${renderSize(usedBytes)} used of ${renderSize(bytes)}`
    : `${what}, ${renderSize(bytes)}, read whole: ${whole}`
}
