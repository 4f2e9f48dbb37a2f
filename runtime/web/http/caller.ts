/** Who sends a request and with which rights, and what the HTTP layer needs to know to answer it. */
import type { Actor } from '../../services/state/journal.ts'
import type { PeerSettings } from './peer.ts'
import type { TokenScope } from '../../services/access/tokens.ts'

export interface ErrorView {
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly hint: string | null
  readonly loggedIn: boolean
}

/** Read at each request, so that a change needs no restart. */
export interface WebSettings extends PeerSettings {
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
