/** The parts of a write: the image's first MiB, what becomes of its table, its body and the reading back, with the progress of both. */
import { decideBottleneck, type FlashEvent, type FlashPlan } from './rules/flash-plan.ts'
import { type LastGrowth, MARK_BYTES, planMarks, renderMark } from './rules/last-partition.ts'
import type { FrameMap } from '#engine/image/rules/frame-map.ts'
import { checkLength, readHead } from '#engine/image/image-inspection.ts'
import { createSlot, type Device, fixBackup, notHeld } from '#engine/disk/device.ts'
import type { MovedBackup } from '#engine/disk/rules/partition-tables.ts'
import type { Delta } from './comparison.ts'
import {
  bytesToVerify,
  createZeroer,
  type Slots,
  type TaskGroup,
  verifyWritten,
  type Written,
} from './copier.ts'
import { createMeter, type Waits } from './meter.ts'
import type { Counted } from '#engine/image/sources/source.ts'
import type { ImageStream } from './image-stream.ts'
import { isStoredRaw } from '#engine/image/rules/format.ts'
import { exactBytes, leastBytes } from '#engine/image/rules/image.ts'
import { locateEnds } from '#engine/disk/rules/extents.ts'
import type { MountTools } from '#engine/disk/mounts.ts'
import type { Shell } from '#kit/host/shell.ts'
import { settle, untilAborted, watch } from '#kit/host/watch.ts'
import { randomBytes } from 'node:crypto'

/** A write under way: the image, its first MiB, the disk, and what is shared by its steps. */
export interface WriteRun {
  readonly plan: FlashPlan
  readonly counted: Counted
  readonly delta: Delta
  readonly imageStream: ImageStream
  readonly head: Buffer
  readonly device: Device
  readonly tasks: TaskGroup
  readonly slots: Slots
  readonly waits: Waits
  readonly signal: AbortSignal
}

/** The time between two `writing` events. */
const TICK_MS = 250
/** How long a cancelled or failed flash waits for what is still under way. */
export const CLEANUP_MS = 500

/** The image's first MiB; a Fault where it is damaged, no disk image, or does not fit the disk. */
export async function readFirst(opening: Promise<ImageStream>, plan: FlashPlan) {
  const imageStream = await opening
  const head = await readHead(imageStream.filler, plan)
  checkLength(plan.image, head)
  return { imageStream, head }
}

const NO_DELTA: Delta = { comparison: null, report: () => ({}) }

/** What becomes of the wish to write only what differs. `compared`: the disk, where it can be compared. */
export async function openDelta(plan: FlashPlan, map: FrameMap | null, compared: Device | null) {
  if (!plan.delta) return NO_DELTA
  const { planDelta } = await import('./comparison.ts')
  return planDelta(plan, map, compared)
}

/** What becomes of the image's table on this disk. */
export interface TableChanges {
  /** The backup GPT that --fix-gpt moves; null: it stays. */
  readonly moved: MovedBackup | null
  /** What becomes of the last partition with --grow. */
  readonly growth: LastGrowth | null
}

/** A Fault `plan-refused` where the last partition cannot grow. */
export async function planChanges(
  plan: FlashPlan,
  head: Buffer,
  disk: Pick<Device, 'sizeBytes' | 'sectorBytes'>,
): Promise<TableChanges> {
  if (plan.grow) {
    const { planGrowth } = await import('./grower.ts')
    const growth = planGrowth(head, disk)
    return { growth, moved: growth.moved }
  }
  return { growth: null, moved: plan.fixGpt ? fixBackup(head, disk) : null }
}

/** What grows the last partition once `written` was read back; null: nothing grows. */
export async function prepareGrowing(
  tools: MountTools,
  run: WriteRun & TableChanges,
  written: Written,
) {
  const { growth } = run
  if (growth === null) return null
  const { prepareGrowth } = await import('./grower.ts')
  return await prepareGrowth(tools, { ...run, growth, written })
}

interface Body extends Written {
  /** The image's end, or where the disk's last MiB begins. */
  readonly end: number
  /** Those that show whether the disk is as large as it says. */
  readonly marks: Marks
}

/**
 * Writes what lies between the disk's ends; `cleared`: they are, which is the first thing that is
 * written. Tells `writing` again and again. Returns when all of it was handed to the disk.
 */
export async function* writeBody(
  run: WriteRun & Pick<TableChanges, 'growth'>,
  shell: Shell,
  cleared: Promise<void>,
): AsyncGenerator<FlashEvent, Body> {
  const { plan, counted, delta, head, device, tasks, slots, waits, signal, imageStream } = run
  const { filler } = imageStream
  const meter = createMeter({
    phase: 'write',
    totalBytes: exactBytes(plan.image.virtual),
    sourceBytes: counted.source.sizeBytes,
    bytesRead: counted.bytesRead,
    shares: counted.source.shares,
    bytesDone: head.length,
    isDelta: delta.comparison !== null,
    bottleneck: () => decideBottleneck(waits.snapshot(), originOf(plan)),
  })
  yield { ...meter.snapshot(plan.image.format), ...delta.report() }
  await untilAborted(signal, cleared)
  const marks = createMarks(run)
  tasks.launch(marks.write)
  await untilAborted(signal, tasks.land())
  const { headBytes, tailStart } = locateEnds(device.sizeBytes)
  const zeroer = createZeroer(shell, device, plan.zeros)
  async function copy(): Promise<Body> {
    const { end, written } = await imageStream.copy({
      filler: { ...filler, fill: (into) => waits.during('filling', filler.fill(into)) },
      device,
      zeroer,
      tasks,
      slots: {
        ...slots,
        enter: () => waits.during('disk', slots.enter()),
        take: () => waits.during('disk', slots.take()),
      },
      skipZeros: plan.zeros !== 'write',
      verifies: plan.verify !== 'none',
      from: head.length,
      to: head.length < headBytes ? head.length : tailStart,
      signal,
      onWritten: meter.add,
      onKept: meter.keep,
    })
    await tasks.land()
    return { ...written, end, marks }
  }
  try {
    const body = yield* watch(untilAborted(signal, copy()), TICK_MS, () => meter.snapshot())
    // Where an image begins with zeros, it is decided later than at the first event.
    yield { ...meter.snapshot(), ...delta.report() }
    return body
  } catch (thrown) {
    // Why a source was left is known by now, and the last tick was before.
    if (counted.source.shares !== undefined) yield meter.snapshot()
    throw thrown
  } finally {
    await settle(zeroer[Symbol.asyncDispose](), CLEANUP_MS)
  }
}

const originOf = ({ image }: FlashPlan) => ({
  isRemote: image.url !== null,
  isDecoded: !isStoredRaw(image.format),
})

/** Reads back what was written; a Fault `verify-failed` names the first place that differs. */
export async function* readBodyBack(run: WriteRun, written: Body): AsyncGenerator<FlashEvent> {
  const { plan, counted, device, tasks, slots, signal } = run
  const all = plan.verify === 'all'
  const meter = createMeter({
    phase: 'verify',
    totalBytes: bytesToVerify({ written, all }),
    sourceBytes: null,
    bytesRead: counted.bytesRead,
    shares: counted.source.shares,
  })
  yield meter.snapshot('verify')
  const order = { device, written, all, tasks, slots, signal, onVerified: meter.add }
  const reading = verifyWritten(order)
  yield* watch(untilAborted(signal, reading), TICK_MS, () => meter.snapshot())
  yield meter.snapshot()
}

type Marks = ReturnType<typeof createMarks>

interface MarkedRun {
  readonly plan: FlashPlan
  readonly device: Device
  readonly delta: Delta
  readonly growth: LastGrowth | null
  readonly signal: AbortSignal
}

/**
 * A Fault where the disk does not take or hold them. There are none where the disk is compared: a mark that
 * came to lie on what was just found to be right would stay there, as that is not written again.
 */
function createMarks({ plan, device, delta, growth, signal }: MarkedRun) {
  const { sizeBytes } = device
  const imageEnd = Math.max(leastBytes(plan.image.virtual), growth?.partition.offset ?? 0)
  const grownEnd = growth?.grows === true ? growth.partition.offset + growth.partition.bytes : null
  const isMarked = delta.comparison === null
  const places = isMarked ? planMarks({ sizeBytes, imageEnd, grownEnd }) : []
  const flash = randomBytes(8).toString('hex')
  return {
    /** Returns when they are on the medium. */
    async write() {
      for (const at of places) {
        signal.throwIfAborted()
        const slot = createSlot(MARK_BYTES)
        renderMark(at, flash).copy(slot)
        await device.write(slot, at)
      }
      await device.flush()
    },
    /** Those before `from` were written over. */
    async check(from: number) {
      for (const at of places.filter((place) => place >= from)) {
        signal.throwIfAborted()
        const slot = createSlot(MARK_BYTES)
        await device.read(slot, at)
        if (!slot.equals(renderMark(at, flash))) {
          throw notHeld(device.node, { offset: at, bytes: MARK_BYTES })
        }
      }
    },
  }
}
