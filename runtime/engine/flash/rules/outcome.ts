/** The outcome of a flash, and the state in which it left the disk. */
import { Fault, renderError, type FaultCode } from '../../../kit/foundation/fault.ts'
import type { DeltaState } from '../../inventory/rules/run.ts'
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

/** How far a flash came: `writing` from the first byte on, `written` once the whole image is on the disk. */
export type FlashStage = 'checking' | 'writing' | 'written'

/** `target`: as the user named it. */
const LEAVES: Readonly<Record<FlashStage, (target: string) => string>> = {
  checking: () => 'Nothing was written.',
  writing: (target) =>
    `${target} was left without a partition table, so that it cannot boot: flash it again.`,
  written: (target) => `The image is on ${target}; the step after the write is what failed.`,
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
