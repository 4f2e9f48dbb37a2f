/** Plans flashes: looks at an image once, then at each disk that it is meant for. Nothing is written. */
import type { DiskIdentity, TargetFacts } from '#engine/disk/rules/disk.ts'
import {
  findSameDisk,
  type FlashFindings,
  type FlashOrder,
  type FlashPlan,
  type FlashRefusal,
  planFlash,
  renderReasons,
} from './rules/flash-plan.ts'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import type { Provisioning } from './rules/provisioning.ts'
import { FORMATS } from '#engine/image/rules/format.ts'
import { renderUnseen } from '#engine/image/rules/image-head.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createShell } from '#kit/host/shell.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { createDecoders } from '#engine/image/formats.ts'
import { type CheckedImage, checkImage, inspectSectors } from '#engine/image/image-inspection.ts'
import { createImages } from '#engine/image/images.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { createSources, type SourcesOptions } from '#engine/image/sources/sources.ts'

/** Flashes that `run` can carry out. */
export interface ReadyFlashes {
  readonly order: Pick<FlashOrder, 'image' | 'mirrors' | 'provisioning' | 'firstBoot'>
  /** The disks, in the order of the targets. */
  readonly disks: readonly ReadyDisk[]
  /** The opened image, which stays open; absent: `run` opens it. */
  readonly source?: Source
}

export interface ReadyDisk {
  readonly target: Pick<TargetFacts, 'path'>
  /** The plan, or every reason against it. */
  readonly plan: Result<FlashPlan, readonly string[]>
}

/** What became of one target. */
export type PlannedDisk = FlashFindings & Pick<ReadyDisk, 'plan'>

/** What became of an order; holds the image open until it is disposed of, for `run` to read it. */
export interface PlannedFlashes extends Required<ReadyFlashes>, AsyncDisposable {
  readonly disks: readonly PlannedDisk[]
}

export interface FlasherOptions extends SourcesOptions {
  /** Whether this process may write to disks; absent: known only once the disk is opened. */
  readonly isRoot?: boolean
  /**
   * Of several disks, one fails that does nothing for so long while others wait for it; absent: a
   * minute. The kernel resets a bus that is silent for half of it, and a write is tried twice.
   */
  readonly diskStallMs?: number
  /** Absent: this machine's. */
  readonly readFirmware?: () => Promise<FirmwareFacts | null>
}

const readOwn = async () =>
  await (await import('#engine/bootable/firmware.ts')).readFirmware(process.arch)

export type FlashTools = ReturnType<typeof createTools>

export function createTools(given: FlasherOptions) {
  const { env, isRoot = true, diskStallMs = 60_000, readFirmware = readOwn } = given
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const decoders = createDecoders({ shell })
  return {
    shell,
    env,
    isRoot,
    diskStallMs,
    readFirmware,
    disks,
    decoders,
    images: createImages({ shell }),
    sources: createSources(given),
    /** The provisioner is loaded only for a flash that provisions. */
    async loadProvisioner() {
      const { createProvisioner } = await import('./provisioner.ts')
      return createProvisioner({ shell, env })
    },
    /** The seed writer is loaded only for a flash with a first-boot configuration. */
    async loadSeedWriter() {
      const { checkSeedTools, createSeedWriter } = await import('./seed-writer.ts')
      return {
        check: () => checkSeedTools({ shell, env }),
        create: (firstBoot: FirstBoot) => createSeedWriter({ shell, env }, firstBoot),
      }
    },
  }
}

interface OpenedImage extends CheckedImage {
  readonly source: Source
}

/**
 * Opens the image and looks at it, at the files and tools of the later steps, then at the targets.
 * What speaks against a flash is a value; what is missing is a Fault. Nothing is written.
 */
export async function planFlashes(
  tools: FlashTools,
  order: FlashOrder,
  signal: AbortSignal,
): Promise<PlannedFlashes> {
  const { image, sources = [] } = order
  if (sources.length === 0) {
    const source = await tools.sources.open(image, { signal, renew: order.renewSource })
    return await planFrom(tools, order, source, signal)
  }
  const { planFromSources } = await import('./listed-planner.ts')
  return await planFromSources(tools.sources, order, signal, (source) =>
    planFrom(tools, order, source, signal),
  )
}

/** The source is closed with what is returned. */
async function planFrom(
  tools: FlashTools,
  order: FlashOrder,
  source: Source,
  signal: AbortSignal,
): Promise<PlannedFlashes> {
  await using undo = new AsyncDisposableStack()
  undo.use(source)
  const opened = { source, ...(await checkOrdered(tools, order, source, signal)) }
  const { image } = opened
  const found = await Promise.all(
    order.targets.map(({ path }) => untilAborted(signal, tools.disks.probe(path, image.path))),
  )
  const noteBoot = createBootNotes(tools, order, opened, signal)
  const disks: PlannedDisk[] = []
  for (const [index, facts] of found.entries()) {
    const chosen = order.targets[index]?.chosen ?? null
    const others = found.slice(0, index)
    disks.push(
      await planTarget(tools, opened, { ...order, facts, chosen, others, noteBoot }, signal),
    )
  }
  const held = undo.move()
  return { order, disks, source, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

async function checkOrdered(
  { images, decoders, loadProvisioner, loadSeedWriter }: FlashTools,
  { format, anyContent, sizeBytes, options, provisioning = NOTHING, firstBoot = null }: FlashOrder,
  source: Source,
  signal: AbortSignal,
): Promise<CheckedImage> {
  const request = { format, sha256: options.sha256, anyContent, sizeBytes }
  const checked = await checkImage(source, request, { images, decoders }, signal)
  if (provisioning.mode !== 'none') await (await loadProvisioner()).check(provisioning)
  if (firstBoot !== null) await (await loadSeedWriter()).check()
  if (checked.image.format !== null) await decoders.check(checked.image.format)
  return checked
}

interface TargetOrder extends Pick<FlashOrder, 'options' | 'firstBoot' | 'provisioning'> {
  readonly facts: TargetFacts
  readonly chosen: DiskIdentity | null
  /** The targets that were named before it. */
  readonly others: readonly TargetFacts[]
  readonly noteBoot: NoteBoot
}

/** What speaks against the flash is a value; nothing is written. */
async function planTarget(
  tools: FlashTools,
  { image, imageProblem, imageHint, sha256, indexSha256, source }: OpenedImage,
  { facts: target, others, noteBoot, ...order }: TargetOrder,
  signal: AbortSignal,
): Promise<PlannedDisk> {
  const index = order.options.indexSha256 ?? indexSha256
  const options = { ...order.options, sha256, indexSha256: index }
  const planned = planFlash(image, target, options, order.chosen)
  const sectors = planned.ok ? await checkSectors(tools, source, planned.value, signal) : FITTING
  const against = planned.ok
    ? [...sectors.refusals, ...(await refuseContent(tools, source, planned.value, order, signal))]
    : planned.refusal
  const same = findSameDisk(target, others)
  const refusals = same === null ? against : [...against, same]
  const boot = planned.ok ? await noteBoot(target) : []
  const seen = addNotes(image, [...sectors.notes, ...boot])
  const findings = { image: seen, imageProblem, imageHint, target, options, refusals }
  const reasons = renderReasons(findings)
  return { ...findings, plan: planned.ok && reasons.length === 0 ? planned : refuse(reasons) }
}

interface SectorCheck {
  readonly refusals: readonly FlashRefusal[]
  readonly notes: readonly string[]
}
const FITTING: SectorCheck = { refusals: [], notes: [] }

/** Only disks of other sectors than the usual ones are worth a look into the image. */
async function checkSectors(
  tools: FlashTools,
  source: Source,
  plan: FlashPlan,
  signal: AbortSignal,
): Promise<SectorCheck> {
  if (plan.target.sectorBytes === 512) return FITTING
  try {
    const verdict = await inspectSectors(tools.decoders, source, plan, signal)
    if (verdict?.kind === 'other') {
      return { refusals: [{ why: 'other-sectors', reason: verdict.reason }], notes: [] }
    }
    const isUnseen = verdict?.kind === 'unseen'
    return { refusals: [], notes: isUnseen ? [renderUnseen(plan.target.sectorBytes)] : [] }
  } catch (thrown) {
    // What is wrong with its first MiB is said when that is checked, before the first byte.
    if (thrown instanceof Fault) return FITTING
    throw thrown
  }
}

/** Sticks and cards are often for another machine. */
const PORTABLE = ['usb', 'mmc', 'sdio']
/** A plan does not wait longer for an image that is elsewhere. */
const LOOK_MS = 5000

type NoteBoot = (target: TargetFacts) => Promise<readonly string[]>

/** Looks into the image once, for all disks of a plan. */
function createBootNotes(
  tools: FlashTools,
  order: FlashOrder,
  opened: OpenedImage,
  signal: AbortSignal,
): NoteBoot {
  let looking: Promise<string | null> | null = null
  return async ({ device }) => {
    if (PORTABLE.includes(device?.tran ?? '')) return []
    looking ??= describeBoot(tools, order, opened, signal)
    const note = await looking
    return note === null ? [] : [note]
  }
}

async function describeBoot(
  { readFirmware, sources }: FlashTools,
  { image: location, renewSource }: FlashOrder,
  { source, image: { format } }: OpenedImage,
  signal: AbortSignal,
): Promise<string | null> {
  const isLocal = source.path !== null
  // A server that orders a flash has answered whoever asked for it.
  const isOrdered = renewSource !== undefined
  if (format === null || source.readAt === null || (isOrdered && !isLocal)) return null
  const firmware = await readFirmware()
  if (firmware === null || FORMATS[format].entered === 'at-its-start') return null
  const { describeMisfit } = await import('#engine/bootable/image-boot.ts')
  if (isLocal) return await describeMisfit(source, format, firmware)
  const soon = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)])
  try {
    await using again = await sources.open(location, { signal: soon })
    return await describeMisfit(again, format, firmware)
  } catch (thrown) {
    if (thrown instanceof Fault) return null
    throw thrown
  }
}

const addNotes = (image: ImageFacts, notes: readonly string[]): ImageFacts =>
  notes.length === 0 ? image : { ...image, notes: [...(image.notes ?? []), ...notes] }

/** The image is looked into only where nothing else speaks against the flash. */
async function refuseContent(
  tools: FlashTools,
  source: Source,
  plan: FlashPlan,
  { firstBoot = null, provisioning = NOTHING }: Pick<FlashOrder, 'firstBoot' | 'provisioning'>,
  signal: AbortSignal,
): Promise<readonly FlashRefusal[]> {
  const refusals: FlashRefusal[] = []
  if (plan.grow) {
    const { findGrowthProblem } = await import('./grower.ts')
    const reason = await findGrowthProblem(tools, source, plan, signal)
    if (reason !== null) refusals.push({ why: 'cannot-grow', reason })
  }
  if (firstBoot !== null || provisioning.mode === 'cloud-init') {
    const { findSeedProblem } = await import('./seed-writer.ts')
    const reason = await findSeedProblem(tools, source, plan, firstBoot, signal)
    if (reason !== null)
      refusals.push({ why: firstBoot === null ? 'no-seed' : 'no-first-boot', reason })
  }
  return refusals
}

export const NOTHING: Provisioning = { mode: 'none' }
