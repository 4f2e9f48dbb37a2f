/** The server's services: what a program assembles, and what the server adds for its routes and pages. */
import type {
  By,
  Caller,
  LogSink,
  Peer,
  WebSettings,
  RecordEvents,
} from '#kit/web/answers/caller.ts'
import type { Bounds, Scope } from '#kit/web/answers/rules/rights.ts'
import type { EditBounds } from './rules/edit-bounds.ts'
import type { Accounts, People } from '#fleet/access/accounts.ts'
import type { Passwords } from '#fleet/access/passwords.ts'
import type { ServerSessions } from '#fleet/access/owner-rows.ts'
import type { NamelessLogin } from '#fleet/access/rules/person.ts'
import type { FlashSlot, MachineBase } from '#engine/inventory/rules/machine.ts'
import type { BootFiles } from '#fleet/boot/boot-files.ts'
import type { FollowedCatalog } from '#engine/catalog/catalogs.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { JoinedLeader } from '#fleet/cluster/joining.ts'
import type { Presence } from '#fleet/cluster/presence.ts'
import type { Journal } from '#fleet/state/journal.ts'
import type { Machines } from '#fleet/state/machines.ts'
import type { BootStamps } from '#fleet/run/running-runs.ts'
import type { Runs } from '#fleet/run/runs.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import type { Tokens } from '#fleet/access/tokens.ts'
import type { ProviderViews, SetProvider } from '#server/openid/provider-login.ts'
import type { BatchMaker } from './batch-maker.ts'
import type { Inventories } from './inventories.ts'
import type { FindConflict, ServerLine } from './line.ts'
import type { ChannelViews } from '#server/updates/channel.ts'
import type { SiteViews } from '#kit/web/ui/site-views.ts'
import type { H3Event } from 'h3'
import type { FieldError } from '#kit/foundation/field-error.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { RecordedOutcome } from '#fleet/machine/rules/flash-events.ts'
import type { Contact, MachineRequest, Transition } from './transition.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { ChangePassword } from '#kit/web/access/password-check.ts'
import type { Metrics } from '#kit/web/http/metrics.ts'
import type { Notices } from '#kit/web/ui/form-notices.ts'
import type { Route } from '#kit/web/answers/route.ts'

export interface ServerViews<M> extends ChannelViews<M>, SiteViews, ProviderViews {}

export interface BootEachRequest {
  readonly isRestart: boolean
  /** Milliseconds; undefined: as in the settings. */
  readonly pause: number | undefined
  readonly by: By
  /** Once aborted, no more machines are turned on; each one left out is recorded. */
  readonly signal?: AbortSignal
  /** Resolves once the machine may be restarted; the others do not wait for it. */
  awaitReady?(mac: Mac): Promise<void>
  onFailure?(mac: Mac, why: string): void
}

interface MachinePower {
  /**
   * Asked before anything is armed; null: it can be tried. Asks the BMC whether the machine is on,
   * which only a restart may interrupt.
   */
  refuseBoot(mac: Mac, isRestart: boolean, by: By): Promise<string | null>
  /** Once, from the network. Resolves to why that failed, in words; null: it worked. */
  boot(mac: Mac, isRestart: boolean, by: By): Promise<string | null>
  /** As `refuseBoot`, without asking the BMC. */
  foresee(mac: Mac, isRestart: boolean): string | null
  /** One after the other. Resolves once all were tried, or the rest is skipped. */
  bootEach(macs: readonly Mac[], request: BootEachRequest): Promise<void>
  /** Labels that have the password of BMCs; absent: none. */
  listSecretLabels?(): readonly string[]
  /** Its credentials, too. */
  forgetMachine(mac: Mac): Promise<void>
  /**
   * For someone who sees only these machines: no other's power is shown or changed, nor by a shared
   * outlet. Absent: no power control.
   */
  within?(canSee: (mac: string) => boolean): MachinePower
}

interface BootProof {
  isEnabled(): boolean
  begin(run: Run): Promise<void>
  leave(mac: Mac): Promise<void>
  /** Resolves once the machine may be restarted: its system is looked at first. */
  settle(mac: Mac): Promise<void>
  /** Null: nobody waits for the system of this order, or `signal` was aborted. */
  awaitEnd(mac: Mac, order: string, signal: AbortSignal): Promise<Run | null>
}

export interface PeopleServices {
  readonly store: People
  readonly checkHash: Passwords['checkHash']
  /** Whether the administrator may log in without a name. */
  nameless(): NamelessLogin
  /** Null: none is set, or it is switched off. */
  readonly provider: () => SetProvider | null
  /** The same, also while it is switched off. */
  readonly configured: () => SetProvider | null
}

export interface ServerServices<M extends MachineBase = MachineBase> {
  readonly line: ServerLine<M>
  readonly views: ServerViews<M>
  readonly inventories: Inventories
  readonly machines: Machines<M>
  readonly journal: Journal
  readonly runs: Runs
  readonly changes: Changes
  readonly catalog: FollowedCatalog
  readonly bootFiles: BootFiles
  readonly tokens: Tokens
  readonly secret: Secret
  readonly book: ServerSessions
  settings(): WebSettings
  checkPassword(given: string): Promise<boolean>
  /** Null: the operating system's password, changed there. */
  readonly setPassword: ((password: string) => Promise<void>) | null
  /** Absent: this line knows only the administrator. */
  readonly people?: PeopleServices | undefined
  /** Those besides the one at `base`, by which a machine reached us; absent: none. */
  otherServers?(base: string): readonly string[]
  /** Called before the record is stored. */
  onFlashSlot?(machine: M, slot: FlashSlot): void
  readonly power?: MachinePower | undefined
  readonly stamps?: BootStamps | undefined
  readonly batches?: BatchMaker<M> | undefined
  readonly proof?: BootProof | undefined
  /** The cookie is `name=value`; called for anyone else who accepts the sessions. */
  onLogout?(cookie: string): Promise<void>
  now(): Date
  /** Milliseconds, monotonic; the process's own unless given. */
  elapsed?(): number
  readonly log: LogSink
  readonly version: string
  /** Of a database that servers share; null or absent: this server stands alone. */
  readonly leader?: Pick<JoinedLeader, 'trouble' | 'ended' | 'survivesHost' | 'lease'> | null
  /** Waits until it is sure that no other server leads; absent: this one stands alone. */
  readonly confirmRead?: (() => MaybePromise<unknown>) | undefined
  /** `[database] key`: only the servers of that database know it; empty or absent: none. */
  readonly memberKey?: string
  /** The servers of that database; null or absent: this one stands alone. */
  readonly presence?: Pick<Presence, 'view'> | null
}

export type ServerPlugin<M extends MachineBase> = (site: Site<M>) => {
  /** Called for each view of the site; must have no other effect. */
  routes?(seen: Site<M>): readonly Route[]
  /** By name: `Machine`, `MachineUpsert`, `Inventory`, `Plan`. */
  readonly schemas?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export type Acted<M> =
  | { readonly result: 'done'; readonly machine: M | null }
  | { readonly result: 'refused'; readonly reason: string }
  | { readonly result: 'missing' }

export type UpsertRefusal =
  | { readonly why: 'fields'; readonly fields: readonly FieldError[] }
  | { readonly why: 'stale' }
  /** Unseen, or absent and the requester may add none. */
  | { readonly why: 'missing' }
  /** In words. */
  | { readonly why: 'forbidden'; readonly reason: string }

export interface Fleet<M extends MachineBase> {
  /** As `PUT /machines/{mac}`. `isExpected` gets the replaced record, in the same step. */
  upsert(
    mac: Mac,
    body: unknown,
    by: By,
    isExpected?: (before: M | null) => boolean,
  ): Promise<Result<M, UpsertRefusal>>
  /** False: there was none. */
  remove(mac: Mac, by: By): Promise<boolean>
  /**
   * The only way to change a record: stores what was decided about `before` (from
   * `machines.newest`) with its events. True once both are on disk; no promise if nothing is
   * stored. False: another change came first; find and decide again. Throws where the disk does.
   */
  commit(mac: Mac, by: By, before: M | null, decided: Transition<M>): MaybePromise<boolean>
  /** Decides and commits again where another change came first. `decide` null: nothing to store. */
  update<T extends Transition<M>>(
    mac: Mac,
    by: By,
    decide: (before: M | null) => T | null,
  ): Promise<T | null>
  /** An action of the line, or `delete`. */
  act(mac: Mac, request: ActionRequest<M>, by: By): Promise<Acted<M>>
  /** The name of its newest edit, also of a deleted machine; null: it cannot be undone. */
  findUndoable(mac: Mac): string | null
  listUndoable(batch: string): readonly Mac[]
  /**
   * Within a minute, and only if nobody, not even the machine, has changed the record since. `edit`
   * absent: one of the same requester. `batch`: the edit must be part of it.
   */
  undo(mac: Mac, by: By, meant?: MeantEdit): Promise<Acted<M>>
  /** Resolves as soon as the record says it; null: `signal` was aborted. */
  awaitOutcome(mac: Mac, order: string, signal: AbortSignal): Promise<RecordedOutcome | null>
  /** The bounds hold in the same step in which an edit is decided. */
  within(bounds: EditBounds<M>): Fleet<M>
}

export interface MeantEdit {
  readonly edit?: string | null
  readonly batch?: string | null
}

export interface ActionRequest<M> {
  readonly action: string
  readonly parameters: unknown
  readonly isDryRun?: boolean
  readonly findConflict?: FindConflict<M> | undefined
  readonly batch?: string | null
  /** Undone together with the edit before. */
  readonly continues?: boolean
}

export interface ServerBase<M extends MachineBase = MachineBase> extends ServerServices<M> {
  readonly metrics: Metrics
  readonly recordAll: RecordEvents
  readonly changePassword: ChangePassword
  /** Null: this line knows only the administrator. */
  readonly accounts: Accounts | null
}

export interface Site<M extends MachineBase = MachineBase> extends ServerBase<M> {
  readonly fleet: Fleet<M>
  /** The site finds, counts and lists only what is within these; null: everything. */
  readonly bounds: Bounds | null
  /** True of any MAC without bounds. */
  canSee(mac: string): boolean
  readonly notices: Notices
  /** Throws a 404. */
  findMachine(mac: Mac): M
  /** `anonymous` on open routes only. */
  caller(event: H3Event): Caller
  /** Throws a 403. For routes whose body decides the scope. */
  checkScope(event: H3Event, scope: Scope): void
  mayOpen(event: H3Event, path: string, method?: 'GET' | 'POST'): boolean
  /** False once the session has ended: long answers ask now and then. */
  isStillValid(caller: Caller): boolean
  by(event: H3Event): By
  contact(event: H3Event): Contact
  /** Throws a 401 for a machine that must prove itself (`[pxe] tokens`) and does not. */
  admitMachine(mac: Mac, request: MachineRequest, contact: Contact): MaybePromise<void>
  peer(event: H3Event): Peer
}
