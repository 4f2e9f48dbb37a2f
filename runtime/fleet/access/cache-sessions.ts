/** Which sessions a cache takes: those of the server whose state it shares, as they are there, or those that its key has signed. */
import { existsSync } from 'node:fs'
import { createSignedOut } from '../../kit/web/access/signed-out.ts'
import type { SessionBook } from '../../kit/web/access/session.ts'
import { readSessions } from './owner-rows.ts'

interface CacheSessionsOptions {
  /** `<state_dir>/state.db`, where a server has its state there, and `<state_dir>/signed-out.json`. */
  readonly state: string
  readonly signedOut: string
  now(): Date
}

/**
 * Makes it. A cache with a state of its own knows of no row: a session says itself whose it is, and ends
 * as it says, or by a logout here.
 */
export function createCacheSessions({
  state,
  signedOut: path,
  now,
}: CacheSessionsOptions): SessionBook {
  const list = createSignedOut({ path, now })
  // A server that replaces its file must let nobody in for that moment.
  let isBeside = false
  const rows = () => {
    isBeside = isBeside || existsSync(state)
    return isBeside ? readSessions(state) : null
  }
  return {
    markOf: (owner) => rows()?.markOf(owner) ?? '',
    admit(session) {
      if (list.has(session)) return undefined
      const beside = rows()
      return beside === null ? (session.who ?? null) : beside.admit(session)
    },
    end: (_owner, session, until) => list.add(session, until),
  }
}
