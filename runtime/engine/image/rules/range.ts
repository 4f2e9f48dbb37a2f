/** Answers questions about a file by a few short reads: each step returns the next read or the result. */
import type { VirtualSize } from './image.ts'

/**
 * One step on the way to a virtual size. Whoever reads (a file, an HTTP server) decides how many
 * steps are worth their time: `stopped` is the honest answer when no more is read.
 */
export type RangeStep =
  | {
      readonly kind: 'read'
      /** Byte offset, never negative; the range lies within the file. */
      readonly at: number
      /** The bytes to read, at least 1. */
      readonly length: number
      /** Takes `length` bytes from `at` on, or more of what follows where that costs nothing. */
      take(bytes: Buffer): RangeStep
      readonly stopped: VirtualSize
    }
  | {
      readonly kind: 'known'
      readonly virtual: VirtualSize
      /** What a person should know; absent: nothing. */
      readonly note?: string
    }
  /** In words, as a clause to stand after the image's name. */
  | { readonly kind: 'refused'; readonly refusal: string }

export const UNKNOWN_SIZE = { kind: 'unknown' } as const satisfies VirtualSize

/** A lower bound; one of nothing says nothing. */
export const atLeast = (bytes: number): VirtualSize =>
  bytes > 0 ? { kind: 'at-least', bytes } : UNKNOWN_SIZE

/** A step that reads `length` bytes from `at` on. */
export const reading = (
  [at, length]: readonly [at: number, length: number],
  stopped: VirtualSize,
  take: (bytes: Buffer) => RangeStep,
): RangeStep => ({ kind: 'read', at, length, stopped, take })

export const known = (virtual: VirtualSize, note?: string) =>
  ({ kind: 'known', virtual, ...(note === undefined ? {} : { note }) }) as const
export const refused = (refusal: string) => ({ kind: 'refused', refusal }) as const
