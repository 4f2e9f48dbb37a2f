/** Plans flashes: looks at an image once, then at each disk that it is meant for. */
import type { DiskIdentity, TargetFacts } from '../disk/rules/disk.ts'
import {
  planFlash,
  renderReasons,
  type FlashFindings,
  type FlashOptions,
  type FlashPlan,
  type FlashRefusal,
} from './rules/flash.ts'
import type { FirstBoot } from '../first-boot/rules/seed.ts'
import type { Provisioning } from './rules/provisioning.ts'
import { renderUnseen } from './rules/dos-sectors.ts'
import { Fault } from '../../kit/foundation/fault.ts'
import { refuse, type Result } from '../../kit/foundation/result.ts'
import type { ImageFacts } from '../image/rules/image.ts'
import { createDisks } from '../disk/disks.ts'
import { createShell } from '../../kit/host/shell.ts'
import { untilAborted } from '../../kit/host/watch.ts'
import { createDecoders } from '../image/formats.ts'
import { lookAtSectors } from '../image/image-look.ts'
import { createImages } from '../image/images.ts'
import type { Source } from '../image/sources/source.ts'
import { createSources, type SourcesOptions } from '../image/sources/sources.ts'
import type { OpenFeed } from './image-feed.ts'
import { checkImage, type CheckedImage, type ImageRequest } from './image-checks.ts'

export interface FlashOrder {
  /** A path, `-`, an http(s) URL or an oras reference. */
  readonly image: string
  readonly format: ImageRequest['format']
  readonly anyContent?: ImageRequest['anyContent']
  readonly sizeBytes?: ImageRequest['sizeBytes']
  /** Further places of the same image: they serve frames where it has an index. */
  readonly mirrors?: readonly string[]
  /** A block device. */
  readonly target: string
  readonly options: FlashOptions
  /** The disk that was at `target` when a person chose it; absent or null: nobody looked. */
  readonly chosen?: DiskIdentity | null
  /** The step after the write; absent: none. */
  readonly provisioning?: Provisioning
  /** Written before the disk can boot; absent or null: nothing is. */
  readonly firstBoot?: FirstBoot | null
}

/** A flash that `run` can carry out. */
export interface ReadyFlash {
  readonly order: Pick<FlashOrder, 'image' | 'mirrors' | 'target' | 'provisioning' | 'firstBoot'>
  /** Refused with every reason against it. */
  readonly plan: Result<FlashPlan, readonly string[]>
  /** The opened image, which stays open; absent: `run` opens it. */
  readonly source?: Source
  /** Where its content comes from; absent: from a decoder of its own. */
  readonly openFeed?: OpenFeed
}

type PlannedTarget = FlashFindings & Pick<ReadyFlash, 'plan'>

/** What became of an order; holds the image open until it is disposed of, for `run` to read it. */
export interface PlannedFlash
  extends PlannedTarget, Required<Pick<ReadyFlash, 'source'>>, AsyncDisposable {
  readonly order: ReadyFlash['order']
}

/** Several flashes of one image, in the order of their targets; holds it open until it is disposed of. */
export interface ManyFlashes extends AsyncDisposable {
  readonly flashes: readonly PlannedFlash[]
}

export interface FlasherOptions extends SourcesOptions {
  /** Whether this process may write to disks; absent: known only once the disk is opened. */
  readonly isRoot?: boolean
}

export type FlashTools = ReturnType<typeof createTools>

export function createTools(given: FlasherOptions) {
  const { env, isRoot = true } = given
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const decoders = createDecoders({ shell })
  return {
    shell,
    env,
    isRoot,
    disks,
    decoders,
    images: createImages({ shell }),
    sources: createSources(given),
    /** Loaded only for a flash that provisions. */
    async loadProvisioner() {
      const { createProvisioner } = await import('./provisioner.ts')
      return createProvisioner({ shell, env })
    },
    /** Loaded only for a flash with a first-boot configuration. */
    async loadSeedWriter() {
      const { checkSeedTools, createSeedWriter } = await import('./seed-writer.ts')
      return {
        check: () => checkSeedTools({ shell, env }),
        create: (firstBoot: FirstBoot) => createSeedWriter({ shell, env }, firstBoot),
      }
    },
  }
}

/** An image that was looked at, and stays open until it is disposed of. */
interface OpenedImage extends CheckedImage, AsyncDisposable {
  readonly source: Source
}

/** Opens the image and looks at it, then at the files and tools of the later steps. */
export async function lookAtImage(
  { sources, images, decoders, loadProvisioner, loadSeedWriter }: FlashTools,
  {
    image: location,
    format,
    anyContent,
    sizeBytes,
    options,
    provisioning = NOTHING,
    firstBoot = null,
  }: FlashOrder,
  signal: AbortSignal,
): Promise<OpenedImage> {
  await using undo = new AsyncDisposableStack()
  const source = undo.use(await sources.open(location, { signal }))
  const request = { format, sha256: options.sha256, anyContent, sizeBytes }
  const checked = await checkImage(source, request, { images, decoders }, signal)
  if (provisioning.mode !== 'none') await (await loadProvisioner()).check(provisioning)
  if (firstBoot !== null) await (await loadSeedWriter()).check()
  if (checked.image.format !== null) await decoders.check(checked.image.format)
  const held = undo.move()
  return { ...checked, source, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

export const lookAtTarget = (
  { disks }: FlashTools,
  { image }: OpenedImage,
  path: string,
  signal: AbortSignal,
): Promise<TargetFacts> => untilAborted(signal, disks.probe(path, image.path))

interface TargetOrder extends Pick<FlashOrder, 'options' | 'chosen' | 'firstBoot'> {
  readonly facts: TargetFacts
}

/** What speaks against the flash is a value; nothing is written. */
export async function planTarget(
  tools: FlashTools,
  { image, imageProblem, imageHint, sha256, source }: OpenedImage,
  { facts: target, ...order }: TargetOrder,
  signal: AbortSignal,
): Promise<PlannedTarget> {
  const options = { ...order.options, sha256 }
  const planned = planFlash(image, target, options, order.chosen)
  const sectors = planned.ok ? await checkSectors(tools, source, planned.value, signal) : FITTING
  const refusals = planned.ok
    ? [
        ...sectors.refusals,
        ...(await refuseContent(tools, source, planned.value, order.firstBoot ?? null, signal)),
      ]
    : planned.refusal
  const seen = addNotes(image, sectors.notes)
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
    const verdict = await lookAtSectors(tools.decoders, source, plan, signal)
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

const addNotes = (image: ImageFacts, notes: readonly string[]): ImageFacts =>
  notes.length === 0 ? image : { ...image, notes: [...(image.notes ?? []), ...notes] }

/** The image is looked into only where nothing else speaks against the flash. */
async function refuseContent(
  tools: FlashTools,
  source: Source,
  plan: FlashPlan,
  firstBoot: FirstBoot | null,
  signal: AbortSignal,
): Promise<readonly FlashRefusal[]> {
  const refusals: FlashRefusal[] = []
  if (plan.grow) {
    const { findGrowthProblem } = await import('./grower.ts')
    const reason = await findGrowthProblem(tools, source, plan, signal)
    if (reason !== null) refusals.push({ why: 'cannot-grow', reason })
  }
  if (firstBoot !== null) {
    const { findSeedProblem } = await import('./seed-writer.ts')
    const reason = await findSeedProblem(tools, source, plan, firstBoot, signal)
    if (reason !== null) refusals.push({ why: 'no-first-boot', reason })
  }
  return refusals
}

export const NOTHING: Provisioning = { mode: 'none' }
