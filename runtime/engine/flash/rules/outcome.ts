/** The outcome of a flash, and the state in which it left the disk. */
import { Fault, renderError, type FaultCode } from '#kit/foundation/fault.ts'
import type { DeltaState } from '#engine/inventory/rules/run.ts'
import type { FlashPlan } from './flash.ts'

export type FlashOutcome =
  | {
      readonly kind: 'done'
      readonly plan: FlashPlan
      readonly bytesWritten: number
      readonly seconds: number
      readonly verified: boolean
      /** What a person should know of the image that was written; absent: nothing. */
      readonly warnings?: readonly string[]
      /**
       * The part of bytesWritten that was on the disk already; null or absent: nothing was
       * compared.
       */
      readonly bytesKept?: number | null
      /** What became of the wish to write only what differs; null or absent: nobody had it. */
      readonly delta?: DeltaState | null
    }
  | FlashFailure

export interface FlashFailure {
  /** `cancelled`: by a person or by the end of the program. */
  readonly kind: 'failed' | 'cancelled'
  readonly code: FaultCode | 'unexpected'
  readonly reason: string
  readonly hint: string | null
  /** What is on the disk now, in one sentence. */
  readonly leaves: string
  /** What was thrown. */
  readonly cause?: unknown
}

/** What a flash has done to a disk so far. */
export type FlashStage =
  /** No write was begun. */
  | 'checking'
  /** Writes were begun, and none to the first sectors was confirmed. */
  | 'begun'
  /** The first sectors are erased, and with them every table. */
  | 'writing'
  /** The first sectors of the image were begun: they may be there, all or in part. */
  | 'closing'
  /** The whole image is on the disk. */
  | 'written'

/** `target`: as the user named it. */
const LEAVES: Readonly<Record<FlashStage, (target: string) => string>> = {
  checking: () => 'Nothing was written.',
  begun: (target) => `${target} confirmed no write: nothing of the image is on it.`,
  writing: (target) =>
    `${target} was left without a partition table, so that it cannot boot: flash it again.`,
  closing: (target) =>
    `The partition table of the image may be on ${target} and was not erased again: do not boot from it, flash it again.`,
  written: (target) => `The image is on ${target}; the step after the write is what failed.`,
}

interface DiskWrite {
  /** It reaches the first sector. */
  readonly isFirst: boolean
  /** It erases. */
  readonly isBlank: boolean
  /** The disk confirmed it; else it is about to be written. */
  readonly isConfirmed: boolean
}

/** The stage after a write; one that fails changes nothing more. */
export function nextStage(
  stage: FlashStage,
  { isFirst, isBlank, isConfirmed }: DiskWrite,
): FlashStage {
  if (isFirst && isBlank && isConfirmed) return 'writing'
  if (isFirst && !isBlank) return 'closing'
  return stage === 'checking' ? 'begun' : stage
}

interface FailurePoint {
  readonly target: string
  readonly stage: FlashStage
  /** Whether the flash was asked to end: what it then failed with is a cancel. */
  readonly isAborted: boolean
}

/**
 * Describes what was thrown at this point of a flash, with what is on the disk now. What an abort
 * broke off is `cancelled`, unless it is a Fault of its own.
 */
export function describeFailure(
  thrown: unknown,
  { target, stage, isAborted }: FailurePoint,
): FlashFailure {
  const leaves = LEAVES[stage](target)
  const cause =
    isAborted && !(thrown instanceof Fault)
      ? new Fault('cancelled', 'cancelled', { cause: thrown })
      : thrown
  const { code, hint = null } =
    cause instanceof Fault ? cause : ({ code: 'unexpected', hint: null } as const)
  const kind = code === 'cancelled' ? 'cancelled' : 'failed'
  return { kind, code, reason: renderError(cause), hint, leaves, cause }
}
