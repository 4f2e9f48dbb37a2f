/** The interface between the shared server and a release line's rules about machines. */
import type {
  Contact,
  Transition,
  ScriptTransition,
  Signal,
  PlanTransition,
  MachineRequest,
} from './transition.ts'
import type { Note } from '../../kit/web/answers/event-note.ts'
import type { Scope } from '../../kit/web/answers/caller.ts'
import type { FieldError } from '../../kit/foundation/field-error.ts'
import type { Sifted } from '../../kit/foundation/json/json-sift.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { Inventory, InventoryDisk, MachineBase } from '../../engine/inventory/rules/machine.ts'
import type { Result } from '../../kit/foundation/result.ts'
import type { RecordedOutcome } from '../../fleet/machine/rules/flash-outcome.ts'
import type { Armer, RunOrigin } from '../../engine/inventory/rules/run.ts'
import type { RunEnd } from '../../fleet/run/rules/run-transition.ts'

/** What an operator can do to one machine or many: `flash`, `mode`, `label`, `lock`… */
export interface Action<M> {
  /** The scope that a token needs. */
  readonly scope: Scope
  /** Null: the parameters are valid, for so many machines; absent: for one. */
  check(parameters: unknown, machines?: number): readonly FieldError[] | null
  /** Refused with the reason, in words. `delete` is answered by the server itself. */
  apply(machine: M, parameters: unknown, by: Armer): Result<Transition<M>, string>
  /**
   * Judges the machines of one request as the action leaves them, one after the other: why one cannot
   * go along with those before it. Absent: any can.
   */
  conflicts?(): FindConflict<M>
}

/** Null: it can. Typed as a method: routes, which pass machines on, need not know their line's type. */
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
 * Pure: no I/O, nothing is changed, and asking twice gives the same. Whoever made the line gave it
 * getters of catalog, settings and active sets, which answer from memory.
 */
export interface ServerLine<M extends MachineBase> {
  /** A machine that contacts us for the first time. */
  discover(mac: Mac, now: string): M
  describe(machine: M): MachineDescription
  toWire(machine: M): Readonly<Record<string, unknown>>
  /** Body of `PUT /machines/{mac}` (or a form's fields in the same shape); `before` null: it is new. */
  parseUpsert(
    body: unknown,
    before: M | null,
    on: { readonly mac: Mac; readonly by: Armer },
  ): Result<M, readonly FieldError[]>
  /** Undefined: the body was empty. */
  parseInventory(sifted: Sifted | undefined): Result<Inventory, readonly FieldError[]>
  /**
   * Whether the machine is let in with what it shows (`Contact.bearer`); null: nobody knows it.
   * Refused in words. Notes are worth recording although it is let in.
   */
  admit(
    on: { readonly mac: Mac; readonly machine: M | null; readonly request: MachineRequest },
    contact: Contact,
  ): Result<readonly Note[], string>
  /** `GET /pxe/{mac}`. */
  decideBoot(machine: M, contact: Contact): ScriptTransition<M>
  /** `GET /pxe/{mac}/plan`. */
  decidePlan(machine: M, contact: Contact): PlanTransition<M>
  transition(machine: M, signal: Signal, contact: Contact): Transition<M>
  /**
   * What the record says of a flash that begins, and which one a machine means that reports an end.
   * `order`: that of the run that it names; null: it names none.
   */
  describeRun(
    machine: M,
    contact: Contact,
    order?: string | null,
  ): { readonly origin: RunOrigin } & Pick<RunEnd, 'plannedAt' | 'startedBefore'>
  /** What its newest order is called. */
  nameOrder(machine: M): string
  /** What became of an order; null: it is open. */
  decideOutcome(machine: M, order: string): RecordedOutcome | null
  readonly actions: Readonly<Record<string, Action<M>>>
}
