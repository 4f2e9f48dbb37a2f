/** A fixed set of aligned buffers: a slot is free only when its last user gave it back. */
import type { ImageFormat } from '../../core/image/image.ts'
import { createSlot } from '../disk/device.ts'

/** The size of one write, and how many are under way at once. */
export const SLOT_BYTES = 4 * 1024 * 1024
const DEPTH = 4

/** One to fill and the rest under way. xz and bzip2 decode more slowly than any disk writes. */
export const countSlots = (format: ImageFormat): number =>
  format === 'img.xz' || format === 'img.bz2' ? 3 : DEPTH + 1

export interface Slots {
  /** Waits for a free slot. */
  take(): Promise<Buffer>
  give(slot: Buffer): void
}

export function createSlots(count: number, bytes: number = SLOT_BYTES): Slots {
  const free = Array.from({ length: count }, () => createSlot(bytes))
  const waiting: ((slot: Buffer) => void)[] = []
  return {
    take() {
      const slot = free.pop()
      return slot === undefined
        ? new Promise((resolve) => {
            waiting.push(resolve)
          })
        : Promise.resolve(slot)
    },
    give(slot) {
      const next = waiting.shift()
      if (next === undefined) free.push(slot)
      else next(slot)
    },
  }
}

/** Bounded work in the background: the first failure is kept and thrown at the next call. */
export interface TaskGroup {
  /** Starts work at once; the slot goes back when it is done. */
  launch(work: () => Promise<void>): void
  /** Throws what failed so far. */
  check(): void
  /** Waits for all of it, then throws what failed. */
  land(): Promise<void>
}

export function createTaskGroup(): TaskGroup {
  const flying = new Set<Promise<void>>()
  let failure: { readonly thrown: unknown } | null = null
  const check = () => {
    if (failure !== null) throw failure.thrown
  }
  return {
    check,
    launch(work) {
      const flight: Promise<void> = work()
        .catch((thrown: unknown) => {
          failure ??= { thrown }
        })
        .finally(() => flying.delete(flight))
      flying.add(flight)
    },
    async land() {
      await Promise.all(flying)
      check()
    },
  }
}
