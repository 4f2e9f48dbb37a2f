/** What a release line brings to the shared server, and what the server's routes and pages get. */
import type { H3Event } from 'h3'
import type { FieldError } from '../core/field-error.ts'
import type { Mac } from '../core/mac.ts'
import type { InventoryDisk, MachineBase } from '../core/machine.ts'
import type { Result } from '../core/result.ts'
import type { Armer, Run, RunOrigin } from '../core/run.ts'
import type { RunEnd } from '../core/run-turn.ts'
import type { BootFiles } from '../services/boot-files.ts'
import type { Catalog } from '../services/catalogs.ts'
import type { Feed } from '../services/feed.ts'
import type { Actor, EventNote, Journal } from '../services/journal.ts'
import type { Machines } from '../services/machines.ts'
import type { Runs } from '../services/runs.ts'
import type { Secret } from '../services/secret.ts'
import type { SignedOut } from '../services/signed-out.ts'
import type { Tokens, TokenScope } from '../services/tokens.ts'
import type { Content } from './html.ts'
import type { Theme } from './theme.ts'
import type { Fleet } from './fleet.ts'
import type { Metrics } from './metrics.ts'
import type { Notices } from './notices.ts'
import type { Peer } from './peer.ts'
import type { Route } from './route.ts'

/** What a rule may know of one request of a machine (or of an operator, where it renders a script). */
export interface Contact {
  /** ISO time. */
  readonly now: string
  /** `http://host:port`, checked: it goes into scripts and kernel command lines. */
  readonly baseUrl: string
  readonly ip: string | null
  /** What it shows as `Authorization: Bearer`: hostile, bounded in length. */
  readonly bearer: string | null
  /** What the box says of itself in the query (`buildarch`, `platform`…): hostile, bounded in length. */
  readonly query: Readonly<Record<string, string>>
}

/** Something to put on record; the server adds subject, actor and address. */
export type Note = Pick<EventNote, 'kind' | 'summary' | 'details'> & {
  /** `machine` unless said. */
  readonly subject_kind?: EventNote['subject_kind']
}

/** What a note is about, and who did it. */
export type NoteSubject = { readonly subject_id: string | null } & By

/** A record after something happened to it. The same object as before: nothing to store. */
export interface Turn<M> {
  readonly machine: M
  readonly notes: readonly Note[]
}

export interface ScriptTurn<M> extends Turn<M> {
  /** The whole iPXE script. */
  readonly script: string
  /** Which offer it is, from a short closed list: a metric's label. */
  readonly offer: string
}

export interface PlanTurn<M> extends Turn<M> {
  /** As it is answered. */
  readonly plan: Readonly<Record<string, unknown>>
  readonly mode: string
}

/** Body of `POST /pxe/{mac}/inventory`, checked. */
export interface Inventory {
  readonly disks: readonly InventoryDisk[]
  /** The hardware tree as JSON text; null: absent, or over the limit. */
  readonly hardware: string | null
}

/** What a machine comes for: to be told what to do, to list its disks, to begin a run, to tell of one. */
export type MachineWish = 'plan' | 'inventory' | 'begin' | 'report'

/** What an operator can do to one machine or many: `flash`, `mode`, `label`, `lock`… */
export interface Action<M> {
  /** For people: "Flash again". */
  readonly title: string
  /** What a token needs. */
  readonly scope: Scope
  /** Null: the parameters are as they must be. */
  check(parameters: unknown): readonly FieldError[] | null
  /** Refused with the reason, in words. `delete` is answered by the server itself. */
  apply(machine: M, parameters: unknown, contact: Contact): Result<Turn<M>, string>
}

/** What a page shows when somebody must log in, or when it failed. */
export interface LoginView {
  readonly error: string | null
  /** A local path to go to afterwards, checked. */
  readonly next: string
}

export interface DocumentView {
  readonly title: string
  readonly body: Content
  readonly theme: Theme
  /** Its own address. */
  readonly here: string
}

export interface ErrorView {
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly hint: string | null
  readonly loggedIn: boolean
}

/**
 * All functions but `checkPassword` are synchronous and do no I/O: whoever made the line gave it
 * getters of catalog, settings and active sets, which answer from memory.
 */
export interface ServerLine<M extends MachineBase> {
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
  decideBoot(machine: M, contact: Contact): ScriptTurn<M>
  /** What a caller gets who is not let in, and whoever meets a fault: it boots its own disk. */
  renderExit(contact: Contact): string
  /**
   * Whether the machine is let in with what it shows (`Contact.bearer`); null: nobody knows it.
   * Refused in words. Notes are worth recording although it is let in.
   */
  admit(
    on: { readonly mac: Mac; readonly machine: M | null; readonly wish: MachineWish },
    contact: Contact,
  ): Result<readonly Note[], string>
  /** `GET /pxe/{mac}/plan`. */
  decidePlan(machine: M, contact: Contact): PlanTurn<M>
  /** The record after an operator changed it, with who that was where they armed it. */
  noteArmer(before: M | null, after: M, by: Armer): M
  /** What the record says of a flash that begins. */
  originOf(machine: M): RunOrigin
  /** Of which flash a machine speaks that says that one ended, without a name. */
  whoseEnd(machine: M, contact: Contact): Pick<RunEnd, 'plannedAt' | 'startedBefore'>
  /** `GET /boot/{name}?mac=`, of a file that exists. */
  afterBootFile(machine: M, name: string, contact: Contact): Turn<M>
  afterInventory(machine: M, inventory: Inventory, contact: Contact): Turn<M>
  /** The first word of a run that does what the record says. */
  afterRunBegan(machine: M, contact: Contact): Turn<M>
  afterFlash(machine: M, contact: Contact): Turn<M>
  afterFailure(machine: M, reason: string | null, contact: Contact): Turn<M>
  readonly actions: Readonly<Record<string, Action<M>>>
  /** All machines that a page's query (`q`, `sort`…) means, in its order; `cutPage` does the rest. */
  match(machines: readonly M[], query: URLSearchParams): readonly M[]
  /** One `<tr>` of the machines table. */
  renderRow(machine: M): string
  /** A run of the machine failed or was cancelled, by its own word. */
  noteRunStopped(mac: Mac): void
  /** How far a run is, on one line: the element that pages replace by its id. */
  renderBar(run: Run): string
  renderLogin(view: LoginView): string
  renderError(view: ErrorView): string
  /** A page for everybody, in the frame of the others. */
  renderDocument(view: DocumentView): string
  checkPassword(given: string): Promise<boolean>
  /** JSON schemas for the API document, by name: `Machine`, `MachineUpsert`, `Inventory`, `Plan`. */
  readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** What this line alone serves: its pages and further routes. */
  routes(site: Site<M>): readonly Route[]
}

/** Read at each request, so that a change needs no restart. */
export interface WebSettings {
  /** `https://flasher.example`: what scripts name instead of the `Host` header; null: the header. */
  readonly publicUrl: string | null
  /** Names and addresses that `Host` may hold; empty: any well-formed one. */
  readonly allowedHosts: readonly string[]
  /** Addresses and CIDR ranges of proxies whose forwarding headers count. */
  readonly trustedProxies: readonly string[]
  readonly discoveriesPerMinute: number
  readonly mostUnassigned: number
  readonly uploadMostBytes: number
  /** `GET /metrics` without a session or token. */
  readonly openMetrics: boolean
}

export interface Log {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

/** What the program assembles: real services in production, the same ones in tests. */
export interface ServerParts<M extends MachineBase> {
  readonly line: ServerLine<M>
  readonly machines: Machines<M>
  readonly journal: Journal
  readonly runs: Runs
  readonly feed: Feed
  readonly catalog: Catalog
  readonly bootFiles: BootFiles
  readonly tokens: Tokens
  readonly secret: Secret
  readonly signedOut: SignedOut
  settings(): WebSettings
  /** Who else takes the sessions is told of one that was ended, with its cookie (`name=value`). */
  onLogout?(cookie: string): Promise<void>
  now(): Date
  readonly log: Log
  readonly version: string
}

/** The rights of a token; `admin` includes the others, a session has them all. */
export type Scope = TokenScope

/** Who asks. */
export type Caller =
  | { readonly kind: 'anonymous' }
  /** `expiresAt` in milliseconds since the epoch. */
  | { readonly kind: 'session'; readonly id: string; readonly expiresAt: number }
  | { readonly kind: 'token'; readonly name: string; readonly scopes: readonly Scope[] }

/** Who did it, for the record. */
export interface By {
  readonly actor: Actor
  readonly ip: string | null
}

/** What routes and pages get: the parts, and what the server made of them. */
export interface Site<M extends MachineBase> extends ServerParts<M> {
  readonly fleet: Fleet<M>
  readonly metrics: Metrics
  readonly notices: Notices
  /** Who asks: known for every route that is not open, and `anonymous` for those. */
  caller(event: H3Event): Caller
  /** Throws a 403 for a token without the scope, where a body decides which one it takes. */
  checkScope(event: H3Event, scope: Scope): void
  /** False once the caller's session was ended or is over: long answers ask now and then. */
  isLive(caller: Caller): boolean
  by(event: H3Event): By
  contact(event: H3Event): Contact
  /** Throws a 401 for a machine that must prove who it is (`[pxe] tokens`) and does not. */
  admitMachine(mac: Mac, wish: MachineWish, contact: Contact): Promise<void>
  peer(event: H3Event): Peer
  /** Puts on record; a journal that fails is logged, and stops nobody. */
  noteAll(notes: readonly Note[], on: NoteSubject): Promise<void>
}
