/** One row of the route table: what is asked, who may, what may be sent, who answers. */
import type { H3Event } from 'h3'
import type { Scope } from './line.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH'

/** What a body may be. `most` in bytes; a number read at each request where a setting says it. */
export interface BodyRule {
  readonly kind: 'json' | 'form' | 'bytes'
  readonly most: number | (() => number)
  /** How long it may take to arrive, seconds; for `bytes`, how long nothing may arrive. */
  readonly seconds?: number
}

/** For the API document. */
export interface RouteDoc {
  readonly summary: string
  /** Names of `ServerLine.schemas` or JSON schemas. */
  readonly body?: string | Readonly<Record<string, unknown>>
  readonly answers?: Readonly<Record<string, string | Readonly<Record<string, unknown>>>>
}

export interface Route {
  readonly method: Method
  /** As h3 writes it: `/machines/:mac`. GET answers HEAD too. */
  readonly path: string
  /**
   * `open`: everybody. `page`: an operator's session, else 303 to the login page; errors are HTML.
   * Otherwise a session, or a token with this scope; errors are JSON.
   */
  readonly access: 'open' | 'page' | Scope
  /** Absent: nothing is read of what is sent (and a body over 64 KiB is 413). */
  readonly body?: BodyRule
  readonly doc?: RouteDoc
  /** What it returns is answered as h3 does: text, JSON, a Response, nothing for 204. */
  handle(event: H3Event): unknown
}
