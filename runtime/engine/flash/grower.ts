/** Checks whether an image's last partition can fill a disk, and grows what it holds before the table is written. */
import { Fault } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  detectGrowable,
  GROW_TOOLS,
  hasOrphanFile,
  readBtrfsNumber,
  renderUngrowable,
  type Growable,
  listHashed,
  type SeenPartition,
} from '#engine/disk/rules/file-systems.ts'
import { planLastGrowth, renderLastRefusal, type LastGrowth } from './rules/last-partition.ts'
import type { Device } from '#engine/disk/device.ts'
import { locateEnds } from '#engine/disk/rules/extents.ts'
import { probeContents } from '#engine/disk/disks.ts'
import { type HeldShell, openLoopPart } from '#engine/disk/loop-part.ts'
import type { MountPurpose } from '#engine/disk/rules/mount.ts'
import {
  checkMountPlace,
  type Mounted,
  type MountTools,
  mountVolume,
  readDeviceStarts,
  readImageStarts,
} from '#engine/disk/mounts.ts'
import { parsePartitions } from '#engine/disk/rules/partition-tables.ts'
import { needTools, type Shell } from '#kit/host/shell.ts'
import { untilAborted } from '#kit/host/watch.ts'
import type { Decoders } from '#engine/image/formats.ts'
import { inspectImage, type ImageInspection } from '#engine/image/image-inspection.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { type FlashEvent, type FlashPlan, GROWING } from './rules/flash-plan.ts'
import { type Slots, type TaskGroup, verifyWritten, type Written } from './copier.ts'

type DiskSize = Pick<Device, 'sizeBytes' | 'sectorBytes'>

/**
 * Looks into an image, before a disk is touched, whether its last partition can fill the disk: why it
 * cannot, in words; null where nothing is known against it. A file system that lies too far from the
 * image's beginning is looked at once it is written, as is all of standard input.
 */
export async function findGrowthProblem(
  { shell, decoders, env }: MountTools & { readonly decoders: Decoders },
  source: Source,
  plan: FlashPlan,
  signal: AbortSignal,
): Promise<string | null> {
  await checkMountPlace({ env })
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
  const seen = await readImageStarts(image, listPartitions(image.head, disk))
  const found = await checkGrowable(shell, partition, seen)
  return found?.ok === false ? found.refusal : null
}

function listPartitions(head: Buffer, { sectorBytes }: DiskSize) {
  const listed = parsePartitions(head, sectorBytes)
  return listed.ok ? listed.value : []
}

/** The table as it will be; a Fault `plan-refused` where the last partition cannot fill the disk. */
export const planGrowth = (head: Buffer, disk: DiskSize): LastGrowth => insist(planOn(head, disk))

/** The refusal says in words why the partition cannot fill the disk. */
function planOn(head: Buffer, { sizeBytes, sectorBytes }: DiskSize): Result<LastGrowth, string> {
  const planned = planLastGrowth(head, { sizeBytes, sectorBytes, ...locateEnds(sizeBytes) })
  return planned.ok ? planned : refuse(renderLastRefusal(planned.refusal))
}

interface Found {
  readonly kind: Growable
  readonly first: Buffer
}

/** What the partition holds, refused in words; null: not read. A Fault if tools are missing. */
async function checkGrowable(
  shell: Shell,
  { offset }: LastGrowth['partition'],
  partitions: readonly SeenPartition[],
): Promise<Result<Found, string> | null> {
  const last = partitions.find((seen) => seen.offset === offset)
  if (last === undefined || last.first.length === 0) return null
  const found = detectGrowable(last.first)
  if (!found.ok) return refuse(renderUngrowable(found.refusal))
  if (listHashed(partitions).includes(last)) return refuse(UNDER_VERITY)
  await needTools(shell, GROW_TOOLS[found.value])
  return accept({ kind: found.value, first: last.first })
}

const UNDER_VERITY = 'its last partition is protected by dm-verity and must not be changed'

function insist<Value>(result: Result<Value, string> | null): Value {
  if (result?.ok === true) return result.value
  const reason = result?.refusal ?? 'its last partition cannot be read'
  throw new Fault('plan-refused', `the image cannot be grown: ${reason}`, {
    hint: 'Flash without --grow.',
  })
}

interface GrowOrder {
  readonly plan: Pick<FlashPlan, 'verify'>
  readonly device: Device
  /** The image's first MiB. */
  readonly head: Buffer
  readonly slots: Slots
  readonly tasks: TaskGroup
  readonly signal: AbortSignal
  readonly growth: LastGrowth
  readonly written: Written
}

type GrowStep = (counts: Record<'bytesRead' | 'bytesWritten', number>) => AsyncGenerator<FlashEvent>

/**
 * Looks at what was written, before any of it is read back; a Fault where it cannot be grown. The
 * step that it gives grows it.
 */
export async function prepareGrowth(
  tools: MountTools,
  { plan, device, head, growth, written, slots, tasks, signal }: GrowOrder,
): Promise<GrowStep> {
  if (!growth.grows) return nothing
  const { partition } = growth
  const seen = await untilAborted(signal, readDeviceStarts(device, listPartitions(head, device)))
  const { kind, first } = insist(await checkGrowable(tools.shell, partition, seen))
  /** Returns when the grown file system is on the medium, and nobody works on it any more. */
  async function growFileSystem() {
    {
      await using volume = await openLoopPart(tools.shell, device, partition)
      signal.throwIfAborted()
      const { node, held } = volume
      const part = { node, held, bytes: partition.bytes, first, signal }
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
    if (plan.verify === 'none') return
    // On a card that is smaller than it says, what grew may have come to lie on what was verified. What of
    // the grown partition may differ by now only its file system knows, which was checked above.
    const order = { device, written, all: false, to: partition.offset, slots, tasks, signal }
    await untilAborted(signal, verifyWritten({ ...order, onVerified() {} }))
  }
}

async function* nothing(): AsyncGenerator<never> {}

interface GrownPart {
  readonly node: string
  readonly held: HeldShell
  readonly bytes: number
  /** How it began before it grew. */
  readonly first: Buffer
  readonly signal: AbortSignal
}

/** Looks whether what was grown is sound: a Fault where it is not. */
type Check = () => Promise<void>

const GROW: Readonly<Record<Growable, (part: GrownPart, tools: MountTools) => Promise<Check>>> = {
  ext: growExt,
  xfs: (part, tools) => growMounted(part, tools, ({ at }) => ['xfs_growfs', '-d', at]),
  btrfs: (part, tools) =>
    growMounted(part, tools, ({ at }) => {
      const size = `${readBtrfsNumber(part.first)}:max`
      return ['btrfs', 'filesystem', 'resize', size, at]
    }),
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
  const isOrphaned = hasOrphanFile(part.first)
  if (isOrphaned) await held.require(['tune2fs', '-O', '^orphan_file', node], { signal })
  await held.require(['resize2fs', node], { signal })
  if (isOrphaned) await held.require(['tune2fs', '-O', 'orphan_file', node], { signal })
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
  new Fault('tool-failed', `the file system was damaged while it was grown: ${reason}`, {
    hint: 'Flash without --grow, and let the system grow it.',
    cause,
  })
