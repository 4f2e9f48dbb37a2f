/** The interface between the shared server and a release line's rules about machines. */
import type {
  Contact,
  Transition,
  ScriptTransition,
  Signal,
  PlanTransition,
  MachineRequest,
} from './transition.ts'
import type { PlainEvent } from '../../kit/web/answers/plain-event.ts'
import type { Scope } from '../../kit/web/answers/rules/rights.ts'
import type { FieldError } from '../../kit/foundation/field-error.ts'
import type { Sifted } from '../../kit/foundation/json/json-sift.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { Inventory, InventoryDisk, MachineBase } from '../../engine/inventory/rules/machine.ts'
import type { Result } from '../../kit/foundation/result.ts'
import type { RecordedOutcome } from '../../fleet/machine/rules/flash-outcome.ts'
import type { Armer, Run, RunOrigin } from '../../engine/inventory/rules/run.ts'
import type { RunEnd } from '../../fleet/run/rules/run-transition.ts'

/** What an operator can do to one machine or many: `flash`, `mode`, `label`, `lock`… */
export interface Action<M> {
  /** The scope that a token needs. */
  readonly scope: Scope
  /** Checks the parameters for so many machines, or for one where that is left out; null: they are valid. */
  check(parameters: unknown, machines?: number): readonly FieldError[] | null
  /**
   * Makes the change; the refusal gives the reason in words. `delete` is answered by the server itself.
   * `batch`: the batch that it is a part of; null or absent: none. `sees`: whether who asks sees a
   * machine, of which alone a refusal speaks; absent: they see all.
   */
  apply(
    machine: M,
    parameters: unknown,
    by: Armer,
    batch?: string | null,
    sees?: { sees(machine: M): boolean }['sees'],
  ): Result<Transition<M>, string>
  /**
   * Judges the machines of one request as the action leaves them, one after the other: why one cannot
   * go along with those before it. Absent: any can.
   */
  conflicts?(): FindConflict<M>
}

/**
 * Null: the machine can go along. Typed as a method, because routes pass machines on without knowing
 * their line's type.
 */
export type FindConflict<M> = { find(after: M): string | null }['find']

interface MachineDescription {
  /** For metrics: the intent, from a short closed list. */
  readonly mode: string
  /** The fields that lifecycle events carry. */
  readonly details: Readonly<Record<string, unknown>>
  readonly disks: readonly InventoryDisk[] | null
  /** Whether it was discovered and nobody has given it anything to do. */
  readonly isUnassigned: boolean
}

/**
 * The rules of a line are pure: they do no I/O and change nothing, and asking twice gives the same.
 * Whoever made the line gave it getters of catalog, settings and active sets, which answer from memory.
 */
export interface ServerLine<M extends MachineBase> {
  /** Makes the record of a machine that contacts us for the first time; `now` is an ISO time. */
  discover(mac: Mac, now: string): M
  describe(machine: M): MachineDescription
  toWire(machine: M): Readonly<Record<string, unknown>>
  /** Returns the labels that scopes of people name; absent: machines of this line have none. */
  labelsOf?(machine: M): readonly string[]
  /**
   * Parses the body of `PUT /machines/{mac}` (or a form's fields in the same shape); `before` null: the
   * machine is new. The refusal names each field that is wrong.
   */
  parseUpsert(
    body: unknown,
    before: M | null,
    on: { readonly mac: Mac; readonly by: Armer },
  ): Result<M, readonly FieldError[]>
  /** Parses a report of disks; undefined: its body was empty. */
  parseInventory(sifted: Sifted | undefined): Result<Inventory, readonly FieldError[]>
  /**
   * Decides whether the machine is let in with what it shows (`Contact.bearer`); null: nobody knows it.
   * The refusal gives the reason in words; events are worth recording although it is let in.
   */
  admit(
    on: { readonly mac: Mac; readonly machine: M | null; readonly request: MachineRequest },
    contact: Contact,
  ): Result<readonly PlainEvent[], string>
  /** Whether its disk may hold a part of an image, so that it must not boot; absent: this line does not say. */
  isHalfWritten?(machine: M): boolean
  /** Decides the response of `GET /pxe/{mac}`. */
  decideBoot(machine: M, contact: Contact): ScriptTransition<M>
  /** Decides the response of `GET /pxe/{mac}/plan`. */
  decidePlan(machine: M, contact: Contact): PlanTransition<M>
  transition(machine: M, signal: Signal, contact: Contact): Transition<M>
  /**
   * Returns what the record says of a flash that begins, and which flash a machine means that reports
   * an end. `order` is that of the run that it names; null: it names none.
   */
  describeRun(
    machine: M,
    contact: Contact,
    order?: string | null,
  ): { readonly origin: RunOrigin; readonly stamps?: Partial<NonNullable<Run['stamps']>> } & Pick<
    RunEnd,
    'plannedAt' | 'startedBefore'
  >
  /** Returns the name of the machine's newest order. */
  nameOrder(machine: M): string
  /** Decides what became of an order; null: it is open. */
  decideOutcome(machine: M, order: string): RecordedOutcome | null
  readonly actions: Readonly<Record<string, Action<M>>>
  /**
   * Makes the record that an undone edit leaves; `present` null: the edit deleted the machine. Nothing
   * is armed by it: `present` itself where the edit only took an order away. Absent: edits are not undone.
   */
  undo?(before: M, present: M | null, now: string): M
}
