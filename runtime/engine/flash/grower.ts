/** Checks whether an image's last partition can fill a disk, and grows what it holds before the table is written. */
import { Fault } from '../../kit/foundation/fault.ts'
import { refuse, type Result } from '../../kit/foundation/result.ts'
import {
  detectGrowable,
  GROW_TOOLS,
  hasOrphanFile,
  renderUngrowable,
  SIGNATURE_BYTES,
  type Growable,
} from '../disk/rules/growable.ts'
import { planLastGrowth, renderLastRefusal, type LastGrowth } from './rules/last-partition.ts'
import { createSlot, type Device } from '../disk/device.ts'
import { locateEnds } from '../disk/rules/disk-end.ts'
import { probeContents } from '../disk/disk-contents.ts'
import type { HeldShell } from '../disk/held-shell.ts'
import { openLoopPart } from '../disk/loop-part.ts'
import type { MountPurpose } from '../disk/rules/mount.ts'
import type { Mounted, MountTools } from '../disk/mounts.ts'
import { mountVolume } from '../disk/root-file-systems.ts'
import { needTools, type Shell } from '../../kit/host/shell.ts'
import { untilAborted } from '../../kit/host/watch.ts'
import type { Decoders } from '../image/formats.ts'
import { inspectImage, type ImageInspection } from '../image/image-inspection.ts'
import type { Source } from '../image/sources/source.ts'
import { GROWING, type FlashEvent, type FlashPlan } from './rules/flash.ts'
import type { TaskGroup } from './write-slots.ts'

type DiskSize = Pick<Device, 'sizeBytes' | 'sectorBytes'>

/**
 * Looks into an image, before a disk is touched, whether its last partition can fill the disk: why it
 * cannot, in words; null where nothing is known against it. A file system that lies too far from the
 * image's beginning is looked at once it is written, as is all of standard input.
 */
export async function findGrowthProblem(
  { shell, decoders }: { readonly shell: Shell; readonly decoders: Decoders },
  source: Source,
  plan: FlashPlan,
  signal: AbortSignal,
): Promise<string | null> {
  const { identity, sectorBytes } = plan.target
  const disk = { sizeBytes: identity.sizeBytes, sectorBytes }
  return await inspectImage(decoders, { source, plan }, signal, (image) =>
    inspect(shell, image, disk),
  )
}

async function inspect(
  shell: Shell,
  image: ImageInspection,
  disk: DiskSize,
): Promise<string | null> {
  const planned = planOn(image.head, disk)
  if (!planned.ok) return planned.refusal
  const { grows, partition } = planned.value
  if (!grows) return null
  const first = await image.read(partition.offset, Math.min(SIGNATURE_BYTES, partition.bytes))
  const found = first && (await checkGrowable(shell, first))
  return found === null || found.ok ? null : found.refusal
}

/** The table as it will be; a Fault `plan-refused` where the last partition cannot fill the disk. */
export const planGrowth = (head: Buffer, disk: DiskSize): LastGrowth => insist(planOn(head, disk))

/** The refusal says in words why the partition cannot fill the disk. */
function planOn(head: Buffer, { sizeBytes, sectorBytes }: DiskSize): Result<LastGrowth, string> {
  const planned = planLastGrowth(head, { sizeBytes, sectorBytes, ...locateEnds(sizeBytes) })
  return planned.ok ? planned : refuse(renderLastRefusal(planned.refusal))
}

/** What the partition holds, refused in words; a Fault where the tools for it are missing. */
async function checkGrowable(shell: Shell, first: Buffer): Promise<Result<Growable, string>> {
  const found = detectGrowable(first)
  if (!found.ok) return refuse(renderUngrowable(found.refusal))
  await needTools(shell, GROW_TOOLS[found.value])
  return found
}

function insist<Value>(result: Result<Value, string>): Value {
  if (result.ok) return result.value
  throw new Fault('plan-refused', `the image cannot be grown: ${result.refusal}`, {
    hint: 'Flash without --grow.',
  })
}

interface GrowOrder {
  readonly device: Device
  readonly growth: LastGrowth
  readonly tasks: TaskGroup
  readonly signal: AbortSignal
}

type GrowStep = (counts: Record<'bytesRead' | 'bytesWritten', number>) => AsyncGenerator<FlashEvent>

/**
 * Looks at what was written, before any of it is read back; a Fault where it cannot be grown. The
 * step that it gives grows it.
 */
export async function prepareGrowth(
  tools: MountTools,
  { device, growth, tasks, signal }: GrowOrder,
): Promise<GrowStep> {
  if (!growth.grows) return nothing
  const { partition } = growth
  const first = createSlot(Math.min(SIGNATURE_BYTES, partition.bytes))
  await untilAborted(signal, device.read(first, partition.offset))
  const kind = insist(await checkGrowable(tools.shell, first))
  const isOrphaned = kind === 'ext' && hasOrphanFile(first)
  /** Returns when the grown file system is on the medium, and nobody works on it any more. */
  async function growFileSystem() {
    {
      await using volume = await openLoopPart(tools.shell, device, partition)
      signal.throwIfAborted()
      const { node, held } = volume
      const part = { node, held, bytes: partition.bytes, hasOrphanFile: isOrphaned, signal }
      const check = await GROW[kind](part, tools)
      // Nothing that the kernel remembers of it is checked.
      for (const cached of [node, device.node]) {
        await held.require(['blockdev', '--flushbufs', cached], { signal })
      }
      await check()
    }
    await device.flush()
  }
  return async function* grow({ bytesRead, bytesWritten }) {
    yield {
      event: 'writing',
      phase: 'verify',
      note: GROWING,
      bytes_read: bytesRead,
      bytes_written: bytesWritten,
      total_bytes: bytesWritten,
      rate: 0,
      eta_seconds: null,
    }
    const growing = growFileSystem()
    // A cancel does not wait for it, but the disk stays open until its tools have ended.
    tasks.launch(() => growing)
    await untilAborted(signal, growing)
  }
}

async function* nothing(): AsyncGenerator<never> {}

interface GrownPart {
  readonly node: string
  readonly held: HeldShell
  readonly bytes: number
  readonly hasOrphanFile: boolean
  readonly signal: AbortSignal
}

/** Looks whether what was grown is sound: a Fault where it is not. */
type Check = () => Promise<void>

const GROW: Readonly<Record<Growable, (part: GrownPart, tools: MountTools) => Promise<Check>>> = {
  ext: growExt,
  xfs: (part, tools) => growMounted(part, tools, ({ at }) => ['xfs_growfs', '-d', at]),
  btrfs: (part, tools) =>
    growMounted(part, tools, ({ at }) => ['btrfs', 'filesystem', 'resize', 'max', at]),
  ntfs: growNtfs,
}

/** Twice: without a question, and also where the last one to write asked for a check. */
const NTFSRESIZE = ['ntfsresize', '--force', '--force', '--no-progress-bar'] as const

async function growNtfs({ node, held, signal }: GrownPart): Promise<Check> {
  await held.require([...NTFSRESIZE, node], { signal })
  return () => requireSound([...NTFSRESIZE, '--check', node], { held, signal })
}

/** resize2fs works only on what was just checked; 1: what was wrong has been put right. */
async function growExt(part: GrownPart, tools: MountTools): Promise<Check> {
  const { node, held, signal } = part
  await held.require(['e2fsck', '-f', '-p', node], { signal, right: [0, 1] })
  // A kernel that lacks a feature of it cannot tell whether it is sound.
  const isMountable = (await tryMount(part, tools)) === null
  if (part.hasOrphanFile) await held.require(['tune2fs', '-O', '^orphan_file', node], { signal })
  await held.require(['resize2fs', node], { signal })
  if (part.hasOrphanFile) await held.require(['tune2fs', '-O', 'orphan_file', node], { signal })
  return async () => {
    await requireSound(['e2fsck', '-f', '-n', node], part)
    if (isMountable) await requireMount(part, tools)
  }
}

/** These grow only where they are mounted: in a place that nobody else sees. */
async function growMounted(
  part: GrownPart,
  tools: MountTools,
  argv: (mounted: Mounted) => readonly string[],
): Promise<Check> {
  const { node, held, signal } = part
  const outcome = await mountPart(part, tools, 'write')
  if (!outcome.ok) throw new Fault('tool-failed', `${node}: ${outcome.refusal}`)
  await using mounted = outcome.value
  await held.require(mounted.enter(argv(mounted)), { signal })
  await mounted.sync()
  return () => requireMount(part, tools)
}

async function mountPart({ node, bytes }: GrownPart, tools: MountTools, purpose: MountPurpose) {
  const contents = await probeContents(tools.shell, node)
  const volume = { node, kind: 'part', sizeBytes: bytes, contents } as const
  return await mountVolume(tools, volume, null, purpose)
}

/** Why it cannot be mounted; null where it can. */
async function tryMount(part: GrownPart, tools: MountTools): Promise<string | null> {
  const outcome = await mountPart(part, tools, 'check')
  if (!outcome.ok) return outcome.refusal
  await outcome.value[Symbol.asyncDispose]()
  return null
}

async function requireMount(part: GrownPart, tools: MountTools) {
  const refusal = await tryMount(part, tools)
  if (refusal !== null) throw notSound(refusal)
}

async function requireSound(
  argv: readonly string[],
  { held, signal }: Pick<GrownPart, 'held' | 'signal'>,
) {
  try {
    await held.require(argv, { signal })
  } catch (thrown) {
    signal.throwIfAborted()
    const [tool = ''] = argv
    throw notSound(`${tool} finds errors in it`, thrown)
  }
}

const notSound = (reason: string, cause?: unknown) =>
  new Fault('tool-failed', `the file system is damaged now that it has grown: ${reason}`, {
    hint: 'Flash without --grow, and let the system grow it.',
    cause,
  })
