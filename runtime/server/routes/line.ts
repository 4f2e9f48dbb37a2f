/** The interface between the shared server and a release line's rules about machines. */
import type {
  Contact,
  Transition,
  ScriptTransition,
  Signal,
  PlanTransition,
  MachineRequest,
} from './transition.ts'
import type { PlainEvent } from '#kit/web/answers/caller.ts'
import type { Scope } from '#kit/web/answers/rules/rights.ts'
import type { FieldError } from '#kit/foundation/field-error.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { InventoryDisk, MachineBase } from '#engine/inventory/rules/machine.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { RecordedOutcome } from '#fleet/machine/rules/flash-events.ts'
import type { Armer, Run, RunOrigin } from '#engine/inventory/rules/run.ts'
import type { RunEnd } from '#fleet/run/rules/run-record.ts'

export interface Action<M> {
  readonly scope: Scope
  /** `machines` absent: for one. Null: valid. */
  check(parameters: unknown, machines?: number): readonly FieldError[] | null
  /**
   * The refusal gives the reason in words. The server itself handles `delete`. `batch` null or
   * absent: none. `canSee`: whether the requester sees a machine (refusals name no other); absent:
   * all.
   */
  apply(
    machine: M,
    parameters: unknown,
    by: Armer,
    batch?: string | null,
    canSee?: { canSee(machine: M): boolean }['canSee'],
  ): Result<Transition<M>, string>
  /** Why a machine cannot go along with those before it in the request; absent: any can. */
  conflicts?(): FindConflict<M>
}

/** Null: it can. A method type: routes pass machines on without knowing their line's type. */
export type FindConflict<M> = { find(after: M): string | null }['find']

interface MachineDescription {
  /** For metrics: from a short closed list. */
  readonly mode: string
  readonly details: Readonly<Record<string, unknown>>
  readonly disks: readonly InventoryDisk[] | null
  readonly isUnassigned: boolean
}

/** Pure, and the same when asked twice: catalog, settings and sets come from memory. */
export interface ServerLine<M extends MachineBase> {
  /** `now` is an ISO time. */
  discover(mac: Mac, now: string): M
  describe(machine: M): MachineDescription
  toWire(machine: M): Readonly<Record<string, unknown>>
  /** Absent: machines of this line have none. */
  labelsOf?(machine: M): readonly string[]
  /** `before` null: a new machine. The refusal names each wrong field. */
  parseUpsert(
    body: unknown,
    before: M | null,
    on: { readonly mac: Mac; readonly by: Armer },
  ): Result<M, readonly FieldError[]>
  /** By `Contact.bearer`; `machine` null: unknown. Events are recorded although it is admitted. */
  admit(
    on: { readonly mac: Mac; readonly machine: M | null; readonly request: MachineRequest },
    contact: Contact,
  ): Result<readonly PlainEvent[], string>
  /** Whether it must not boot its disk; absent: this line does not say. */
  isHalfWritten?(machine: M): boolean
  decideBoot(machine: M, contact: Contact): ScriptTransition<M>
  decidePlan(machine: M, contact: Contact): PlanTransition<M>
  transition(machine: M, signal: Signal, contact: Contact): Transition<M>
  /** `order`: of the run that the machine names; null: it names none. */
  describeRun(
    machine: M,
    contact: Contact,
    order?: string | null,
  ): { readonly origin: RunOrigin; readonly stamps?: Partial<NonNullable<Run['stamps']>> } & Pick<
    RunEnd,
    'plannedAt' | 'startedBefore'
  >
  /** Begins to look up what `refuseArming` will need of many. */
  expectArming?(machines: readonly (M | null)[]): void
  /** Why it is not armed; null: it may be. Absent, or no promise: nothing has to be looked up. */
  refuseArming?(before: M | null, after: M): MaybePromise<string | null>
  /** Why its next boot is another one than a flash; null, or absent: it is none. */
  findOtherBoot?(machine: M): string | null
  nameOrder(machine: M): string
  /** Null: the order is open. */
  decideOutcome(machine: M, order: string): RecordedOutcome | null
  readonly actions: Readonly<Record<string, Action<M>>>
  /**
   * Arms nothing. `present` null: the edit deleted the machine. Returns `present` where the edit
   * only took an order away. Absent: no undo.
   */
  undo?(before: M, present: M | null, now: string): M
}
