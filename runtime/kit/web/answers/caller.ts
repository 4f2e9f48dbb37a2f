/** The caller of a request and its rights, and the context that the HTTP layer needs to respond. */
import type { Requester, JournalEntry } from '#fleet/state/journal.ts'
import type { H3Event } from 'h3'
import { reachOf, type Bounds, type Reach, permits, type Role, type Scope } from './rules/rights.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'

export interface ErrorView {
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly hint: string | null
  readonly loggedIn: boolean
  /** Whether all sections are open to the caller. */
  readonly seesAll: boolean
}

export interface Peer {
  /** IPv4 where it is one; null only where there is no socket (in-process requests). */
  readonly ip: string | null
  /** As asked for, checked: host or address, with a port when it is not the usual one. */
  readonly host: string
  readonly isSecure: boolean
  /** What scripts and links name. */
  readonly baseUrl: string
  /** Hosts that a form of ours may come from. */
  readonly ownHosts: readonly string[]
}

/** Arrays are replaced, never changed. */
export interface PeerSettings {
  /** `https://flasher.example`: what scripts name instead of the `Host` header; null: the header. */
  readonly publicUrl: string | null
  /** Names and addresses that `Host` may hold; empty: any well-formed one. */
  readonly allowedHosts: readonly string[]
  /** Addresses and CIDR ranges of proxies whose forwarding headers count. */
  readonly trustedProxies: readonly string[]
}

/** Read at each request, so that a change needs no restart. */
export interface WebSettings extends PeerSettings {
  readonly discoveriesPerMinute: number
  readonly mostUnassigned: number
  readonly uploadMostBytes: number
  /** `GET /metrics` without a session or token. */
  readonly openMetrics: boolean
}

export interface LogSink {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

/** A person with a name, as their session or the token that belongs to them says. */
export interface CallerPerson {
  readonly id: string
  readonly name: string
  /** Null: they may do nothing. */
  readonly role: Role | null
  /** The labels of their scope, which those who administrate do not have (`reachOf`); null: none. */
  readonly labels: Reach
}

export type Caller =
  | { readonly kind: 'anonymous' }
  /** `expiresAt` in milliseconds since the epoch; `person` null: the administrator. */
  | {
      readonly kind: 'session'
      readonly id: string
      readonly expiresAt: number
      readonly person: CallerPerson | null
    }
  /** `person`: whose token it is, whose rights limit its scopes; null: the administrator's. */
  | {
      readonly kind: 'token'
      readonly name: string
      readonly scopes: readonly Scope[]
      readonly person: CallerPerson | null
    }

/** Null: the administrator, a program or nobody. */
export const personOf = (caller: Caller): CallerPerson | null =>
  caller.kind === 'session' ? caller.person : null

/** Null: none, as for the machines themselves, who are anonymous. */
export function boundsOf(caller: Caller): Bounds | null {
  if (caller.kind === 'anonymous') return null
  const { person } = caller
  const reach = person === null ? null : reachOf(person)
  const administrates =
    caller.kind === 'token'
      ? permits(caller.scopes, 'admin')
      : person === null || person.role === 'administrate'
  return reach === null && administrates ? null : { reach, administrates }
}

/** Who did it, for the record. */
export type By = Requester

/** Fields of the event itself: each request reads them several times. */
declare module 'h3' {
  interface H3EventContext {
    peer?: Peer
    caller?: Caller
    /** The answer is one person's: no cache may keep it. */
    isPrivate?: boolean
    /** Milliseconds, of the clock that never jumps. */
    startedAt?: number
    recordTime?: RecordTime
  }
}

export type RecordTime = (status: number, seconds: number) => void

const ANONYMOUS: Caller = { kind: 'anonymous' }

/** On routes that are open, everybody is anonymous. */
export const callerOf = (event: H3Event): Caller => event.context.caller ?? ANONYMOUS

/** Every route has it: the dispatcher finds it first. */
export function peerOf({ context: { peer } }: H3Event): Peer {
  if (peer === undefined) throw new TypeError('the request came past the dispatcher')
  return peer
}

/** Something to put on record; the server adds subject, actor and address. */
export type PlainEvent = Pick<JournalEntry, 'kind' | 'summary' | 'details'> & {
  /** `machine` unless said. */
  readonly subject_kind?: JournalEntry['subject_kind']
}

export type EventSubject = { readonly subject_id: string | null } & By

/** Puts on record; a journal that fails is logged, and stops nobody. */
export type RecordEvents = (events: readonly PlainEvent[], on: EventSubject) => MaybePromise<void>
