/** The context of routes and pages: the program's services, and what the server adds to them. */
import type { ServerServices } from './server-services.ts'
import type { H3Event } from 'h3'
import type { Contact, MachineRequest } from './transition.ts'
import type { NoteAll } from '../../kit/web/answers/event-note.ts'
import type { By, Caller, Peer, Scope } from '../../kit/web/answers/caller.ts'
import type { Eventual } from '../../kit/foundation/eventual.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import type { Fleet } from './fleet.ts'
import type { ChangePassword } from '../../kit/web/access/password-change.ts'
import type { Metrics } from '../../kit/web/http/metrics.ts'
import type { Notices } from '../../kit/web/ui/form-notices.ts'
import type { Route } from '../../kit/web/answers/route.ts'

/** What only some release lines have: each part is given the site once, and says what it adds. */
export type ServerPlugin<M extends MachineBase> = (site: Site<M>) => {
  readonly routes?: readonly Route[]
  /** JSON schemas for the API document, by name: `Machine`, `MachineUpsert`, `Inventory`, `Plan`. */
  readonly schemas?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** What routes and pages get: the services, and what the server made of them. */
export interface Site<M extends MachineBase = MachineBase> extends ServerServices<M> {
  readonly fleet: Fleet<M>
  readonly metrics: Metrics
  readonly notices: Notices
  /** From memory. Throws a 404 for a machine that nobody knows. */
  findMachine(mac: Mac): M
  /** Who asks: known for every route that is not open, and `anonymous` for those. */
  caller(event: H3Event): Caller
  /** Throws a 403 for a token without the scope, where a body decides which one it takes. */
  checkScope(event: H3Event, scope: Scope): void
  /** False once the caller's session was ended or is over: long answers ask now and then. */
  isStillValid(caller: Caller): boolean
  by(event: H3Event): By
  contact(event: H3Event): Contact
  /** Throws a 401 for a machine that must prove who it is (`[pxe] tokens`) and does not. */
  admitMachine(mac: Mac, request: MachineRequest, contact: Contact): Eventual<void>
  peer(event: H3Event): Peer
  readonly changePassword: ChangePassword
  readonly noteAll: NoteAll
}
