/** So many writes under way at once, and the aligned buffers for them. */
import type { ImageFormat } from '#appliance/disk-images.ts'
import { FORMATS } from '#engine/image/rules/format.ts'
import { createSlot } from '#engine/disk/device.ts'

/** The size of one write, and how many are under way at once. */
export const SLOT_BYTES = 4 * 1024 * 1024
const DEPTH = 4

/** One to fill and the rest under way; fewer where decoding is slower than any disk. */
export const countSlots = (format: ImageFormat): number => (FORMATS[format].isSlow ? 3 : DEPTH + 1)

/** Where buffers come from. */
export interface SlotPool {
  take(): Promise<Buffer>
  give(slot: Buffer): void
}

/** Made when they are first needed, and used again. */
function createOwnPool(): SlotPool {
  const free: Buffer[] = []
  return {
    take: () => Promise.resolve(free.pop() ?? createSlot(SLOT_BYTES)),
    give: (slot) => void free.push(slot),
  }
}

export type Slots = ReturnType<typeof createSlots>

export function createSlots(count: number, pool = createOwnPool()) {
  let free = count
  const waiting: (() => void)[] = []
  async function enter(): Promise<void> {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
  }
  function leave() {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
  return {
    /** Waits for a place; what is written there has memory of its own. */
    enter,
    leave,
    /** Waits for a place, and for a buffer. */
    async take(): Promise<Buffer> {
      await enter()
      return await pool.take()
    },
    give(slot: Buffer) {
      pool.give(slot)
      leave()
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
