/** Grows the last partition's file system on a disk whose partition table is still to be written. */
import { Fault } from '../../core/foundation/fault.ts'
import type { Range } from '../../core/image/extents.ts'
import {
  detectGrowable,
  GROW_TOOLS,
  SIGNATURE_BYTES,
  type Growable,
} from '../../core/flash/growable.ts'
import { renderLastRefusal, renderUngrowable } from '../../core/flash/grow-text.ts'
import { planLastGrowth, type LastGrowth } from '../../core/flash/last-partition.ts'
import { createSlot, type Device } from '../disk/device.ts'
import { locateEnds } from '../disk/disk-ends.ts'
import { probeContents } from '../disk/disk-contents.ts'
import type { HeldShell } from '../disk/held-shell.ts'
import { openLoopPart } from '../disk/loop-part.ts'
import type { Mounted, MountTools } from '../disk/mounts.ts'
import { mountVolume } from '../disk/root-file-systems.ts'
import { toolMissing, type Shell } from '../host/shell.ts'
import { untilAborted } from '../host/watch.ts'
import { GROWING, type FlashEvent } from '../../core/flash/flash.ts'
import type { TaskGroup } from './write-slots.ts'

/** The table as it will be; a Fault `plan-refused` where the last partition cannot fill the disk. */
export function planGrowth(
  head: Buffer,
  { sizeBytes, sectorBytes }: Pick<Device, 'sizeBytes' | 'sectorBytes'>,
): LastGrowth {
  const planned = planLastGrowth(head, { sizeBytes, sectorBytes, ...locateEnds(sizeBytes) })
  if (planned.ok) return planned.value
  throw cannotGrow(renderLastRefusal(planned.refusal))
}

/** What the partition holds; a Fault where that is no file system that grows, or its tools are missing. */
async function checkGrowable(shell: Shell, first: Buffer): Promise<Growable> {
  const found = detectGrowable(first)
  if (!found.ok) throw cannotGrow(renderUngrowable(found.refusal))
  for (const tool of GROW_TOOLS[found.value]) {
    if (!(await shell.has(tool))) throw toolMissing(tool)
  }
  return found.value
}

const cannotGrow = (reason: string) =>
  new Fault('plan-refused', `the image cannot be grown: ${reason}`, {
    hint: 'Flash without --grow.',
  })

interface GrowOrder {
  readonly device: Device
  readonly growth: LastGrowth
  readonly tasks: TaskGroup
  readonly signal: AbortSignal
}

interface WriteCounts {
  readonly bytesRead: number
  readonly bytesWritten: number
}

/**
 * Looks at what was written, before any of it is read back; a Fault where it cannot be grown. The
 * step that it gives grows it.
 */
export async function prepareGrowth(
  tools: MountTools,
  { device, growth, tasks, signal }: GrowOrder,
): Promise<(counts: WriteCounts) => AsyncGenerator<FlashEvent>> {
  if (!growth.grows) return nothing
  const { partition } = growth
  const first = createSlot(Math.min(SIGNATURE_BYTES, partition.bytes))
  await untilAborted(signal, device.read(first, partition.offset))
  const kind = await checkGrowable(tools.shell, first)
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
    const growing = growFileSystem(tools, { device, partition, kind, signal })
    // A cancel does not wait for it, but the disk stays open until its tools have ended.
    tasks.launch(() => growing)
    await untilAborted(signal, growing)
  }
}

async function* nothing(): AsyncGenerator<never> {}

interface FileSystemGrowth {
  readonly device: Device
  readonly partition: Range
  readonly kind: Growable
  readonly signal: AbortSignal
}

/** Returns when the grown file system is on the medium, and nobody works on it any more. */
async function growFileSystem(
  tools: MountTools,
  { device, partition, kind, signal }: FileSystemGrowth,
): Promise<void> {
  {
    await using part = await openLoopPart(tools.shell, device, partition)
    signal.throwIfAborted()
    await GROW[kind]({ node: part.node, held: part.held, bytes: partition.bytes, signal }, tools)
  }
  await device.flush()
}

interface Part {
  readonly node: string
  readonly held: HeldShell
  readonly bytes: number
  readonly signal: AbortSignal
}

const GROW: Readonly<Record<Growable, (part: Part, tools: MountTools) => Promise<void>>> = {
  ext: growExt,
  xfs: (part, tools) => growMounted(part, tools, ({ at }) => ['xfs_growfs', '-d', at]),
  btrfs: (part, tools) =>
    growMounted(part, tools, ({ at }) => ['btrfs', 'filesystem', 'resize', 'max', at]),
  // Twice: without a question, and also where the last one to write asked for a check.
  ntfs: ({ node, held, signal }) =>
    held.require(['ntfsresize', '--force', '--force', '--no-progress-bar', node], { signal }),
}

/** resize2fs works only on what was just checked; 1: what was wrong has been put right. */
async function growExt({ node, held, signal }: Part) {
  await held.require(['e2fsck', '-f', '-p', node], { signal, right: [0, 1] })
  await held.require(['resize2fs', node], { signal })
}

/** These grow only where they are mounted: in a place that nobody else sees. */
async function growMounted(
  { node, held, bytes, signal }: Part,
  tools: MountTools,
  argv: (mounted: Mounted) => readonly string[],
) {
  const contents = await probeContents(tools.shell, node)
  const volume = { node, kind: 'part', sizeBytes: bytes, contents } as const
  const outcome = await mountVolume(tools, volume, null, 'write')
  if (!outcome.ok) throw new Fault('tool-failed', `${node}: ${outcome.refusal}`)
  await using mounted = outcome.value
  await held.require(mounted.enter(argv(mounted)), { signal })
  await mounted.sync()
}
