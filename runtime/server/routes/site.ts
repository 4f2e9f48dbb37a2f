/** The server's services: what a program assembles, and what the server adds for its routes and pages. */
import type { By, Caller, LogSink, Peer, WebSettings } from '../../kit/web/answers/caller.ts'
import type { Bounds } from '../../kit/web/answers/rules/reach.ts'
import type { EditBounds } from './rules/edit-bounds.ts'
import type { Accounts } from '../../fleet/access/accounts.ts'
import type { Passwords } from '../../fleet/access/passwords.ts'
import type { ServerSessions } from '../../fleet/access/owner-rows.ts'
import type { People } from '../../fleet/access/people.ts'
import type { NamelessLogin } from '../../fleet/access/rules/nameless-login.ts'
import type { Scope } from '../../kit/web/answers/rules/rights.ts'
import type { FlashSlot, MachineBase } from '../../engine/inventory/rules/machine.ts'
import type { BootFiles } from '../../fleet/boot/boot-files.ts'
import type { FollowedCatalog } from '../../engine/catalog/catalogs.ts'
import type { Changes } from '../../kit/host/changes.ts'
import type { JoinedLeader } from '../../fleet/cluster/joining.ts'
import type { Presence } from '../../fleet/cluster/presence.ts'
import type { Journal } from '../../fleet/state/journal.ts'
import type { Machines } from '../../fleet/state/machines.ts'
import type { BootStamps } from '../../fleet/run/boot-stamps.ts'
import type { Run } from '../../engine/inventory/rules/run.ts'
import type { Runs } from '../../fleet/run/runs.ts'
import type { Secret } from '../../kit/web/access/secret.ts'
import type { Tokens } from '../../fleet/access/tokens.ts'
import type { ProviderViews, SetProvider } from '../openid/provider-login.ts'
import type { BatchMaker } from './batch-maker.ts'
import type { FindConflict, ServerLine } from './line.ts'
import type { ChannelViews } from '../updates/channel.ts'
import type { SiteViews } from '../../kit/web/ui/site-views.ts'
import type { H3Event } from 'h3'
import type { FieldError } from '../../kit/foundation/field-error.ts'
import type { Result } from '../../kit/foundation/result.ts'
import type { RecordedOutcome } from '../../fleet/machine/rules/flash-outcome.ts'
import type { Contact, MachineRequest, Transition } from './transition.ts'
import type { RecordEvents } from '../../kit/web/answers/plain-event.ts'
import type { Eventual } from '../../kit/foundation/eventual.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { ChangePassword } from '../../kit/web/access/password-change.ts'
import type { Metrics } from '../../kit/web/http/metrics.ts'
import type { Notices } from '../../kit/web/ui/form-notices.ts'
import type { Route } from '../../kit/web/answers/route.ts'

/** What a release line renders for the shared server. */
export interface ServerViews<M> extends ChannelViews<M>, SiteViews, ProviderViews {}

/** How several machines are booted from the network. */
export interface BootEachRequest {
  readonly isRestart: boolean
  /** Milliseconds between two of them; undefined: as the settings say. */
  readonly pause: number | undefined
  readonly by: By
  /** Once aborted, no more machines are turned on; those that were not reached go on record. */
  readonly signal?: AbortSignal
  /** Resolves once the machine may be restarted; the others do not wait for it. */
  awaitReady?(mac: Mac): Promise<void>
  /** The listener is called with each machine that was not booted, and why. */
  onFailure?(mac: Mac, why: string): void
}

/** What turns machines on so that they boot from the network. */
interface MachinePower {
  /**
   * Says why a machine cannot be booted now, before anything is armed; null: it can be tried. Its BMC
   * is asked whether it is on, which only a restart may change.
   */
  refuseBoot(mac: Mac, isRestart: boolean, by: By): Promise<string | null>
  /** Boots it from the network once. Resolves to why that did not work, in words; null: it did. */
  boot(mac: Mac, isRestart: boolean, by: By): Promise<string | null>
  /** The same from what is known already: no BMC is asked. */
  foresee(mac: Mac, isRestart: boolean): string | null
  /** Boots one machine after the other. Resolves once all were tried, or no more are to be. */
  bootEach(macs: readonly Mac[], request: BootEachRequest): Promise<void>
  /** Lists the labels that have the password of BMCs; absent: none has. */
  listSecretLabels?(): readonly string[]
  /** Forgets how the power of a deleted machine was reached, and what opens its BMC. */
  forgetMachine(mac: Mac): Promise<void>
  /**
   * Makes the same for who sees these machines alone: no other's power is shown or changed, by a shared
   * outlet either. Absent: they control no power.
   */
  within?(sees: (mac: string) => boolean): MachinePower
}

/** Waits for the first boot of systems that were flashed. */
interface BootProof {
  /** Whether runs that end now are followed. */
  isEnabled(): boolean
  /** A run has ended. */
  begin(run: Run): Promise<void>
  /** The next run of the machine began. */
  leave(mac: Mac): Promise<void>
  /** The machine asked for its boot script; no promise where nothing follows. */
  contact(mac: Mac, isToDisk: boolean): Promise<void> | undefined
  /** Resolves once the machine may be restarted: what runs on it is looked at first. */
  settle(mac: Mac): Promise<void>
  /**
   * Resolves with the run of an order once it is known what became of its system, or with null where
   * nobody waits for that or `signal` is aborted before.
   */
  awaitEnd(mac: Mac, order: string, signal: AbortSignal): Promise<Run | null>
}

/** People who log in with a name, each with a password of their own. */
export interface PeopleServices {
  readonly store: People
  readonly checkHash: Passwords['checkHash']
  /** Whether the administrator still logs in without a name. */
  nameless(): NamelessLogin
  /** Returns the provider with which people log in as well; null: none is set. */
  provider(): SetProvider | null
}

/** What the program assembles: real services in production, the same ones in tests. */
export interface ServerServices<M extends MachineBase = MachineBase> {
  readonly line: ServerLine<M>
  readonly views: ServerViews<M>
  readonly machines: Machines<M>
  readonly journal: Journal
  readonly runs: Runs
  readonly changes: Changes
  readonly catalog: FollowedCatalog
  readonly bootFiles: BootFiles
  readonly tokens: Tokens
  readonly secret: Secret
  /** Whose sessions hold. */
  readonly book: ServerSessions
  settings(): WebSettings
  checkPassword(given: string): Promise<boolean>
  /** Null: the password is the operating system's, and is changed there. */
  readonly setPassword: ((password: string) => Promise<void>) | null
  /** Absent: this line knows the administrator alone. */
  readonly people?: PeopleServices | undefined
  /**
   * Lists the other servers of the site than the one at `base`, the address by which a machine reached
   * this one; absent: there are none. Everything that names them asks here.
   */
  otherServers?(base: string): readonly string[]
  /** Notified of each decision on a machine's place among those that flash, before its record is stored. */
  onFlashSlot?(machine: M, slot: FlashSlot): void
  /** Absent: this line controls no power. */
  readonly power?: MachinePower | undefined
  /** Absent: nobody notes when live systems are booted. */
  readonly stamps?: BootStamps | undefined
  /** Absent: this line keeps nothing of what is done to many machines at once. */
  readonly batches?: BatchMaker<M> | undefined
  /** Absent: this line does not wait for first boots. */
  readonly proof?: BootProof | undefined
  /**
   * The listener is called when a session was ended, with its cookie (`name=value`), for whoever else
   * takes the sessions.
   */
  onLogout?(cookie: string): Promise<void>
  now(): Date
  /** The milliseconds of a clock that nobody sets; the process's own unless given. */
  elapsed?(): number
  readonly log: LogSink
  readonly version: string
  /** Where a database that several servers share decides who leads; null or absent: this one stands alone. */
  readonly leader?: Pick<JoinedLeader, 'trouble' | 'ended' | 'survivesHost' | 'lease'> | null
  /** Waits until what is in memory may be shown, as no other server leads; absent: this one stands alone. */
  readonly confirmRead?: (() => Eventual<unknown>) | undefined
  /** What only the servers have that share that database (`[database] key`); empty or absent: nothing. */
  readonly memberKey?: string
  /** What is known of the servers that share that database; null or absent: this one stands alone. */
  readonly presence?: Pick<Presence, 'view'> | null
}

/** What only some release lines have: each part is given the site once, and says what it adds. */
export type ServerPlugin<M extends MachineBase> = (site: Site<M>) => {
  /** Makes its routes for what one of the callers sees of the site; nothing else may happen by that. */
  routes?(seen: Site<M>): readonly Route[]
  /** JSON schemas for the API document, by name: `Machine`, `MachineUpsert`, `Inventory`, `Plan`. */
  readonly schemas?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

type Acted<M> =
  | { readonly result: 'done'; readonly machine: M | null }
  | { readonly result: 'refused'; readonly reason: string }
  | { readonly result: 'missing' }

export type UpsertRefusal =
  | { readonly why: 'fields'; readonly fields: readonly FieldError[] }
  | { readonly why: 'stale' }
  /** Who edits does not see it, or it is not there and they may add none. */
  | { readonly why: 'missing' }
  /** Their rights do not include it; in words. */
  | { readonly why: 'forbidden'; readonly reason: string }

export interface Fleet<M extends MachineBase> {
  /**
   * Creates or replaces a machine as `PUT /machines/{mac}` does. `isExpected` sees the record that
   * would be replaced, in the same step.
   */
  upsert(
    mac: Mac,
    body: unknown,
    by: By,
    isExpected?: (before: M | null) => boolean,
  ): Promise<Result<M, UpsertRefusal>>
  /** Removes a machine; false when there was none. */
  remove(mac: Mac, by: By): Promise<boolean>
  /**
   * Stores what was decided of `before`, which `machines.newest` answered, and records its events: no
   * record changes in another way. True once both are on disk, and no promise where nothing is stored.
   * False: another change came first and nothing is stored, so find and decide again.
   *
   * Throws where the disk does.
   */
  commit(mac: Mac, by: By, before: M | null, decided: Transition<M>): Eventual<boolean>
  /**
   * Finds a record, commits what `decide` makes of it (null: there is none, or none is made), and does
   * so again where another change came first.
   */
  update<T extends Transition<M>>(
    mac: Mac,
    by: By,
    decide: (before: M | null) => T | null,
  ): Promise<T | null>
  /** Carries out one of the line's actions, or `delete`. Nothing is done when `isDryRun`. */
  act(mac: Mac, request: ActionRequest<M>, by: By): Promise<Acted<M>>
  /** Returns the name of the newest edit of a machine, which may be deleted; null: it cannot be undone. */
  findUndoable(mac: Mac): string | null
  /** Lists the machines whose newest edit was a part of this batch and can be undone. */
  listUndoable(batch: string): readonly Mac[]
  /**
   * Undoes the newest edit of a machine within a minute. It is refused where the machine, or anybody,
   * has changed the record since. `edit`: the name of the edit that is meant; absent: one of the same
   * requester. `batch`: the batch whose edit it has to be.
   */
  undo(mac: Mac, by: By, meant?: MeantEdit): Promise<Acted<M>>
  /**
   * Resolves with what became of an order, as soon as the record says it; null when `signal` is
   * aborted before.
   */
  awaitOutcome(mac: Mac, order: string, signal: AbortSignal): Promise<RecordedOutcome | null>
  /** The same machines for somebody with bounds, which count in the step in which an edit is decided. */
  within(bounds: EditBounds<M>): Fleet<M>
}

/** Which edit is to be undone. */
export interface MeantEdit {
  readonly edit?: string | null
  readonly batch?: string | null
}

/** What is done to one machine, or to one of many. */
export interface ActionRequest<M> {
  readonly action: string
  readonly parameters: unknown
  readonly isDryRun?: boolean
  /** Judges each of several machines in one request. */
  readonly findConflict?: FindConflict<M> | undefined
  /** The batch that it is a part of; null or absent: none. */
  readonly batch?: string | null
  /** Whether it is a part of the edit before, which is undone with it. */
  readonly continues?: boolean
}

/** What the server needs for everything else that it makes of its services. */
export interface ServerBase<M extends MachineBase = MachineBase> extends ServerServices<M> {
  readonly metrics: Metrics
  readonly recordAll: RecordEvents
  readonly changePassword: ChangePassword
  /** Changes people; null: this line knows the administrator alone. */
  readonly accounts: Accounts | null
}

/** What routes and pages get: the services, and what the server made of them. */
export interface Site<M extends MachineBase = MachineBase> extends ServerBase<M> {
  readonly fleet: Fleet<M>
  /**
   * Whose view of the server this is: all that it finds, counts and lists is within these bounds; null:
   * everything.
   */
  readonly bounds: Bounds | null
  /** Whether there is a machine within them, by its MAC; true of any MAC where there are none. */
  sees(mac: string): boolean
  readonly notices: Notices
  /** Finds a machine in memory. Throws a 404 where nobody knows it. */
  findMachine(mac: Mac): M
  /** Returns who asks: known for every route that is not open, and `anonymous` for those. */
  caller(event: H3Event): Caller
  /** Throws a 403 for a caller without the scope, where a body decides which one it takes. */
  checkScope(event: H3Event, scope: Scope): void
  /** Whether a page of the table, or a form of it, is open to the caller, for links that lead there. */
  mayOpen(event: H3Event, path: string, method?: 'GET' | 'POST'): boolean
  /** False once the caller's session was ended or is over: long answers ask now and then. */
  isStillValid(caller: Caller): boolean
  by(event: H3Event): By
  contact(event: H3Event): Contact
  /** Throws a 401 for a machine that must prove who it is (`[pxe] tokens`) and does not. */
  admitMachine(mac: Mac, request: MachineRequest, contact: Contact): Eventual<void>
  peer(event: H3Event): Peer
}
