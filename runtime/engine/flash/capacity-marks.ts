/** Marks a disk before a write, and looks afterwards whether each mark is where it was written. */
import { randomBytes } from 'node:crypto'
import { createSlot, notHeld, type Device } from '#engine/disk/device.ts'
import { leastBytes } from '#engine/image/rules/image.ts'
import { MARK_BYTES, planMarks, renderMark } from './rules/mark-places.ts'
import type { Delta } from './comparison.ts'
import type { FlashPlan } from './rules/flash.ts'
import type { LastGrowth } from './rules/last-partition.ts'

export type Marks = ReturnType<typeof createMarks>

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
export function createMarks({ plan, device, delta, growth, signal }: MarkedRun) {
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
