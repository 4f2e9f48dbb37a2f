/** What becomes of the wish to write only what differs: the disk is compared with the image's frames by their digests. */
import type { DeltaState } from '#engine/inventory/rules/run.ts'
import type { FlashPlan } from './rules/flash-plan.ts'
import { FORMATS } from '#engine/image/rules/format.ts'
import { chooseSamples, isWorthwhile } from './rules/writing.ts'
import type { Frame, FrameMap } from '#engine/image/rules/frame-map.ts'
import type { Device } from '#engine/disk/device.ts'
import { locateEnds } from '#engine/disk/rules/extents.ts'
import type { Compare } from '#engine/image/frame/frame-blocks.ts'
import { createSharedSlot, type FrameWorkers } from '#engine/image/frame/frame-workers.ts'

type Comparison = ReturnType<typeof createComparison>

export interface Delta {
  /** Null: nothing is compared. */
  readonly comparison: Comparison | null
  /** The state for the first event of the write; empty where nobody wanted a comparison. */
  report(): { readonly delta?: DeltaState }
}

/**
 * Plans the comparison of a flash that shall write only what differs. `held` is the disk, where it
 * can be compared; without it or an index that can be trusted nothing is compared.
 */
export function planDelta(plan: FlashPlan, map: FrameMap | null, held: Device | null): Delta {
  if (map === null || map.indexSha256 === null || held === null) {
    const isUntrusted = plan.sha256 !== null && plan.indexSha256 === null
    const isEntered = FORMATS[plan.image.format].entered === 'at-frames'
    const delta = isUntrusted && isEntered ? 'untrusted' : 'no-index'
    return { comparison: null, report: () => ({ delta }) }
  }
  const comparison = createComparison(held, map)
  return {
    comparison,
    report: () => ({
      delta: comparison.isWorthwhile() === false ? 'mostly-different' : 'compared',
    }),
  }
}

/** Samples that are read side by side. */
const LANES = 3

/** The disk must be held by us alone: nothing else may write between the look and the decision. */
function createComparison(device: Device, map: FrameMap) {
  const canStay = createStayRule(device)
  /** What sampling found, by the frame's index. */
  const found = new Map<number, boolean>()
  let sampling: Promise<void> | null = null
  let worthwhile: boolean | null = null

  async function isThere(frame: Frame, memory: SharedArrayBuffer, workers: FrameWorkers) {
    const bytes = Math.ceil(frame.bytes / device.sectorBytes) * device.sectorBytes
    if (bytes > memory.byteLength) return false
    await device.read(Buffer.from(memory, 0, bytes), frame.offset)
    const { sha256 } = await workers.run({ does: 'hash', from: memory, bytes: frame.bytes })
    return sha256 === frame.sha256
  }

  async function sample(workers: FrameWorkers) {
    const waiting = [...chooseSamples(map, canStay)]
    const total = waiting.length
    await Promise.all(
      Array.from({ length: LANES }, async () => {
        const memory = createSharedSlot(map.maxBytes)
        for (let frame = waiting.shift(); frame !== undefined; frame = waiting.shift()) {
          found.set(frame.index, await isThere(frame, memory, workers))
        }
      }),
    )
    const matching = [...found.values()].filter(Boolean).length
    worthwhile = isWorthwhile(total, matching)
  }

  const compare: Compare = async (frame, memory, workers) => {
    await (sampling ??= sample(workers))
    const mayStay = canStay(frame)
    const known = found.get(frame.index)
    if (known !== undefined && mayStay) return known ? 'kept' : 'differs'
    if (worthwhile === false || !(await isThere(frame, memory, workers))) return 'differs'
    return mayStay ? 'kept' : 'read'
  }
  return {
    compare,
    /** Null until the first frame was asked for. */
    isWorthwhile: () => worthwhile,
  }
}

/** What reaches into the disk's ends is cleared first and written last; a last sector is filled up. */
function createStayRule({ sizeBytes, sectorBytes }: Device): (frame: Frame) => boolean {
  const { headBytes, tailStart } = locateEnds(sizeBytes)
  return ({ offset, bytes }) =>
    offset >= headBytes && offset + bytes <= tailStart && bytes % sectorBytes === 0
}
