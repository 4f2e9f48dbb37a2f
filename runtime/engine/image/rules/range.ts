/** Answers questions about a file by a few short reads: each step returns the next read or the result. */
import type { VirtualSize } from './image.ts'

/**
 * The reader decides how many steps are worth their time; `stopped` is the answer when no more is
 * read.
 */
export type RangeStep =
  | {
      readonly kind: 'read'
      readonly at: number
      /** At least 1. */
      readonly length: number
      take(bytes: Buffer): RangeStep
      readonly stopped: VirtualSize
    }
  | {
      readonly kind: 'known'
      readonly virtual: VirtualSize
      readonly note?: string
    }
  /** A clause behind the image's name. */
  | { readonly kind: 'refused'; readonly refusal: string }

export const UNKNOWN_SIZE = { kind: 'unknown' } as const satisfies VirtualSize

/** A bound of 0 is no bound. */
export const atLeast = (bytes: number): VirtualSize =>
  bytes > 0 ? { kind: 'at-least', bytes } : UNKNOWN_SIZE

export const reading = (
  [at, length]: readonly [at: number, length: number],
  stopped: VirtualSize,
  take: (bytes: Buffer) => RangeStep,
): RangeStep => ({ kind: 'read', at, length, stopped, take })

export const known = (virtual: VirtualSize, note?: string) =>
  ({ kind: 'known', virtual, ...(note === undefined ? {} : { note }) }) as const
export const refused = (refusal: string) => ({ kind: 'refused', refusal }) as const
