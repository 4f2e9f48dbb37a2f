/** Tells which sessions a cache accepts: those of the server whose state it shares, or those that its key has signed. */
import { existsSync } from 'node:fs'
import { createSignedOut } from '#kit/web/access/signed-out.ts'
import type { SessionBook } from '#kit/web/access/session.ts'
import { readSessions } from './owner-rows.ts'

interface CacheSessionsOptions {
  /** `<state_dir>/state.db`, which may not exist, and `<state_dir>/signed-out.json`. */
  readonly state: string
  readonly signedOut: string
  now(): Date
}

export function createCacheSessions({
  state,
  signedOut: path,
  now,
}: CacheSessionsOptions): SessionBook {
  const list = createSignedOut({ path, now })
  // While a server replaces its file, nobody is let in.
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
