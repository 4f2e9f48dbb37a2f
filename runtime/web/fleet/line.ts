/** What a release line brings to the shared server, and what the server's routes and pages get. */
import type { ChannelViews } from '../live/channel.ts'
import type {
  Contact,
  Transition,
  ScriptTransition,
  PlanTransition,
  Inventory,
  MachineRequest,
} from './transition.ts'
import type { Note } from '../http/event-note.ts'
import type { Scope, ErrorView } from '../http/caller.ts'
import type { FieldError } from '../../core/foundation/field-error.ts'
import type { Mac } from '../../core/machine/mac.ts'
import type { InventoryDisk, MachineBase } from '../../core/machine/machine.ts'
import type { Result } from '../../core/foundation/result.ts'
import type { Armer, RunOrigin } from '../../core/machine/run.ts'
import type { RunEnd } from '../../core/machine/run-transition.ts'
import type { Content } from '../ui/html.ts'
import type { Theme } from '../ui/theme.ts'

/** What an operator can do to one machine or many: `flash`, `mode`, `label`, `lock`… */
export interface Action<M> {
  /** For people: "Flash again". */
  readonly title: string
  /** What a token needs. */
  readonly scope: Scope
  /** Null: the parameters are as they must be. */
  check(parameters: unknown): readonly FieldError[] | null
  /** Refused with the reason, in words. `delete` is answered by the server itself. */
  apply(machine: M, parameters: unknown, contact: Contact): Result<Transition<M>, string>
}

/** What a page shows when somebody must log in, or when it failed. */
export interface LoginView {
  readonly error: string | null
  /** A local path to go to afterwards, checked. */
  readonly next: string
}

interface DocumentView {
  readonly title: string
  readonly body: Content
  readonly theme: Theme
  /** Its own address. */
  readonly here: string
}

/**
 * All functions but `checkPassword` are synchronous and do no I/O: whoever made the line gave it
 * getters of catalog, settings and active sets, which answer from memory.
 */
export interface ServerLine<M extends MachineBase> extends ChannelViews<M> {
  /** A machine that contacts us for the first time. */
  discover(mac: Mac, now: string): M
  /** Body of `PUT /machines/{mac}` (or a form's fields in the same shape); `before` null: it is new. */
  parseUpsert(
    body: unknown,
    before: M | null,
    on: { readonly mac: Mac; readonly now: string },
  ): Result<M, readonly FieldError[]>
  parseInventory(body: unknown): Result<Inventory, readonly FieldError[]>
  toWire(machine: M): Readonly<Record<string, unknown>>
  listDisks(machine: M): readonly InventoryDisk[] | null
  /** Whether it was discovered and nobody has given it anything to do. */
  isUnassigned(machine: M): boolean
  /** For events and metrics: the intent, from a short closed list. */
  modeOf(machine: M): string
  /** The fields that lifecycle events carry. */
  describe(machine: M): Readonly<Record<string, unknown>>
  /** `GET /pxe/{mac}`, of the machine itself: it may be given a place among those that flash. */
  decideBoot(machine: M, contact: Contact): ScriptTransition<M>
  /** The script that `decideBoot` would make now; nothing is given and nothing changes. */
  previewScript(machine: M, contact: Contact): string
  /** What a caller gets who is not let in, and whoever meets a fault: it boots its own disk. */
  renderExit(contact: Contact): string
  /**
   * Whether the machine is let in with what it shows (`Contact.bearer`); null: nobody knows it.
   * Refused in words. Notes are worth recording although it is let in.
   */
  admit(
    on: { readonly mac: Mac; readonly machine: M | null; readonly wish: MachineRequest },
    contact: Contact,
  ): Result<readonly Note[], string>
  /** `GET /pxe/{mac}/plan`. */
  decidePlan(machine: M, contact: Contact): PlanTransition<M>
  /** The record after an operator changed it, with who that was where they armed it. */
  noteArmer(before: M | null, after: M, by: Armer): M
  /** What the record says of a flash that begins. */
  originOf(machine: M): RunOrigin
  /** Of which flash a machine speaks that says that one ended, without a name. */
  whoseEnd(machine: M, contact: Contact): Pick<RunEnd, 'plannedAt' | 'startedBefore'>
  /** `GET /boot/{name}?mac=`, of a file that exists. */
  afterBootFile(machine: M, name: string, contact: Contact): Transition<M>
  afterInventory(machine: M, inventory: Inventory, contact: Contact): Transition<M>
  /** The first word of a run that does what the record says. */
  afterRunBegan(machine: M, contact: Contact): Transition<M>
  afterFlash(machine: M, contact: Contact): Transition<M>
  afterFailure(machine: M, reason: string | null, contact: Contact): Transition<M>
  readonly actions: Readonly<Record<string, Action<M>>>
  /** A run of the machine failed or was cancelled, by its own word. */
  noteRunStopped(mac: Mac): void
  renderLogin(view: LoginView): string
  renderError(view: ErrorView): string
  /** A page for everybody, in the frame of the others. */
  renderDocument(view: DocumentView): string
  checkPassword(given: string): Promise<boolean>
  /** JSON schemas for the API document, by name: `Machine`, `MachineUpsert`, `Inventory`, `Plan`. */
  readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}
