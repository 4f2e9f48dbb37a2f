/** A fixed set of aligned buffers: a slot is free again once its last user has returned it. */
import type { ImageFormat } from '../../core/image/image.ts'
import { createSlot } from '../disk/device.ts'

/** The size of one write, and how many are under way at once. */
export const SLOT_BYTES = 4 * 1024 * 1024
const DEPTH = 4

/** One to fill and the rest under way. xz and bzip2 decode more slowly than any disk writes. */
export const countSlots = (format: ImageFormat): number =>
  format === 'img.xz' || format === 'img.bz2' ? 3 : DEPTH + 1

export type Slots = ReturnType<typeof createSlots>

export function createSlots(count: number) {
  const free = Array.from({ length: count }, () => createSlot(SLOT_BYTES))
  const waiting: ((slot: Buffer) => void)[] = []
  return {
    /** Waits for a free slot. */
    take(): Promise<Buffer> {
      const slot = free.pop()
      return slot === undefined
        ? new Promise((resolve) => {
            waiting.push(resolve)
          })
        : Promise.resolve(slot)
    },
    give(slot: Buffer) {
      const next = waiting.shift()
      if (next === undefined) free.push(slot)
      else next(slot)
    },
  }
}

export type TaskGroup = ReturnType<typeof createTaskGroup>

/** Work in the background: the first failure is kept and thrown at the next call. */
export function createTaskGroup() {
  const running = new Set<Promise<void>>()
  let failure: { readonly thrown: unknown } | null = null
  /** Throws what failed so far. */
  const check = () => {
    if (failure !== null) throw failure.thrown
  }
  return {
    check,
    /** Starts work at once. */
    launch(work: () => Promise<void>) {
      const task: Promise<void> = work()
        .catch((thrown: unknown) => {
          failure ??= { thrown }
        })
        .finally(() => running.delete(task))
      running.add(task)
    },
    /** Waits for all of it, then throws what failed. */
    async land() {
      await Promise.all(running)
      check()
    },
  }
}
