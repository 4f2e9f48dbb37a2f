/** The rows of people and of the administrator without a name: who they are, and whose sessions hold. */
import { randomBytes } from 'node:crypto'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { createSignedOut, type SessionBook, type SessionClaims } from '#kit/web/access/session.ts'
import type { CallerPerson } from '#kit/web/answers/caller.ts'
import type { Database } from '#fleet/state/database.ts'
import { keepRead } from '#fleet/state/kept-rows.ts'
import { readOnce, readText, readTextOrNull, type Row } from '#fleet/state/sqlite.ts'
import {
  MAX_PEOPLE,
  OwnSessionsSchema,
  PersonRecordSchema,
  type OwnSessions,
  type Person,
} from './rules/person.ts'
import { existsSync } from 'node:fs'
import { renderCacheBase } from '#engine/catalog/rules/cache-entry.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { parseHttpTarget } from '#kit/net/rules/image-location.ts'
import { askOnce } from '#kit/net/json-client.ts'
import type { Environment } from '#kit/host/shell.ts'

export interface KeptOwner {
  /** Null: the administrator, who is not listed. */
  readonly person: Person | null
  readonly password: string | null
  readonly sessions: OwnSessions
}

/** The row of the sessions without a name; no person has such an id. */
const NAMELESS = 'administrator'

export interface ServerSessions extends SessionBook {
  endNameless(): Promise<void>
}

/** Nobody logs out this often in a week; beyond it, all sessions of the person end. */
const MAX_ENDED = 1000

type OwnerRows = ReturnType<typeof createOwnerRows>

export function createOwnerRows(database: Database, now: () => Date) {
  const { current, write } = keepRead(database, (sql) => new Map(sql.all(ALL).flatMap(readOwner)))

  async function update(
    id: string,
    change: (before: KeptOwner) => KeptOwner,
  ): Promise<Person | null> {
    const at = now().toISOString()
    return await write((sql) => {
      const [found] = sql
        .all(`${SELECT} WHERE id = ? AND removed_at IS NULL`, id)
        .flatMap(readOwner)
      if (found === undefined) return null
      const changed = change(found[1])
      sql.run(CHANGE, renderRecord(changed), changed.password, at, id)
      return changed.person
    })
  }

  return {
    current,
    update,
    add: (person: Person, password: string | null) =>
      write((sql) => {
        const known = sql.all(ALL).flatMap((row) => readOwner(row)[0]?.[1].person ?? [])
        if (known.some(({ name }) => name === person.name)) return 'name-taken'
        if (known.length >= MAX_PEOPLE) return 'too-many'
        const owner = endAll({ person, password, sessions: NO_SESSIONS })
        sql.run(ADD, person.id, renderRecord(owner), password, person.created_at)
        return null
      }),
    /** False where there was none. */
    remove(id: string): Promise<boolean> {
      const at = now().toISOString()
      return write((sql) => sql.run(REMOVE, at, at, id) > 0)
    },
    /**
     * Await this before anybody logs in: owners without a mark get one, and their earlier sessions
     * have ended; with `endsAll` everybody's have.
     */
    async openSessions(endsAll = false): Promise<void> {
      const at = now().toISOString()
      const lacks = ({ sessions }: KeptOwner) => endsAll || sessions.mark === ''
      if (current().has(NAMELESS) && ![...current().values()].some(lacks)) return
      await write((sql) => {
        sql.run(ADD_NAMELESS, NAMELESS, at)
        for (const [id, owner] of sql.all(ALL).flatMap(readOwner)) {
          if (lacks(owner)) sql.run(CHANGE, renderRecord(endAll(owner)), owner.password, at, id)
        }
      })
    },
  }
}

export function createOwnSessions(
  { current, update }: Pick<OwnerRows, 'current' | 'update'>,
  now: () => Date,
): ServerSessions {
  return {
    markOf: (id) => current().get(id ?? NAMELESS)?.sessions.mark ?? '',
    admit: (session) => admitSession(current().get(ownerOf(session)), session),
    async end(id, session, until) {
      await update(id ?? NAMELESS, (before) => endOne(before, session, until, now()))
    },
    async endNameless() {
      await update(NAMELESS, endAll)
    },
  }
}

/** Read-only access to the sessions of the server whose `state.db` this is. */
const readSessions = (path: string): Pick<SessionBook, 'markOf' | 'admit'> => {
  // Closed again at once: that server may replace the file.
  const find = (id: string) =>
    readOnce(path, `${SELECT} WHERE id = ? AND removed_at IS NULL`, id).flatMap(readOwner)[0]?.[1]
  return {
    markOf: (id) => find(id ?? NAMELESS)?.sessions.mark ?? '',
    admit: (session) => admitSession(find(ownerOf(session)), session),
  }
}

const NO_SESSIONS: OwnSessions = { mark: '', ended: {} }

/** A new random mark: a counter could repeat after an older state is restored. */
export const endAll = (owner: KeptOwner): KeptOwner => ({
  ...owner,
  sessions: { mark: randomBytes(9).toString('base64url'), ended: {} },
})

/** Ended sessions are kept while there are few, as the clock may be wrong; too many end all. */
function endOne(owner: KeptOwner, id: string, until: number, now: Date): KeptOwner {
  const { mark, ended: before } = owner.sessions
  const all = Object.entries({ ...before, [id]: until })
  const isOpen = ([, end]: readonly [string, number]) => end * 1000 > now.getTime()
  const ended = all.length > MAX_ENDED ? all.filter(isOpen) : all
  return ended.length > MAX_ENDED
    ? endAll(owner)
    : { ...owner, sessions: { mark, ended: Object.fromEntries(ended) } }
}

function admitSession(
  owner: KeptOwner | undefined,
  { sid, mark }: SessionClaims,
): CallerPerson | null | undefined {
  if (owner === undefined || mark === '' || mark !== owner.sessions.mark) return undefined
  return Object.hasOwn(owner.sessions.ended, sid) ? undefined : owner.person
}

const ownerOf = ({ who }: SessionClaims): string => who?.id ?? NAMELESS

const renderRecord = ({ person, sessions: { mark, ended } }: KeptOwner): string =>
  JSON.stringify({
    ...(person && describePerson(person)),
    mark,
    ended: Object.keys(ended).length === 0 ? undefined : ended,
  })

/** Leaves out the id, and what somebody with a password does not have. */
const describePerson = ({ name, role, created_at, ...more }: Person) => ({
  name,
  role,
  labels: more.labels ?? undefined,
  created_at,
  provider: more.provider ?? undefined,
  seen_at: more.seen_at ?? undefined,
  blocked_at: more.blocked_at ?? undefined,
})

/** Rows of people who were removed stay, so that an older state brings nobody back. */
const SELECT = 'SELECT id, record, password FROM people'
const ALL = `${SELECT} WHERE removed_at IS NULL ORDER BY json_extract(record, '$.name'), id`
const ADD = 'INSERT INTO people (id, record, password, updated_at) VALUES (?, ?, ?, ?)'
const ADD_NAMELESS = `INSERT INTO people (id, record, updated_at) VALUES (?, '{}', ?) ON CONFLICT DO NOTHING`
const CHANGE = 'UPDATE people SET record = ?, password = ?, updated_at = ? WHERE id = ?'
const REMOVE = `UPDATE people SET removed_at = ?, updated_at = ?, password = NULL
  WHERE id = ? AND removed_at IS NULL`

/** Empty if the row cannot be read: that person cannot log in. */
function readOwner(row: Row): readonly (readonly [string, KeptOwner])[] {
  const record = parseJson(readText(row, 'record'))
  const id = readText(row, 'id')
  const stored = PersonRecordSchema.safeParse(record)
  if (!stored.success && id !== NAMELESS) return []
  const person = stored.success && id !== NAMELESS ? { id, ...stored.data } : null
  const sessions = OwnSessionsSchema.safeParse(record).data ?? NO_SESSIONS
  return [[id, { person, password: readTextOrNull(row, 'password'), sessions }]]
}

/** Tells which sessions a cache accepts: those of the server whose state it shares, or those that its key has signed. */
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

/** Ends a session at the cache service as well, if that accepts this server's sessions. */
interface CacheLogoutOptions {
  readonly url: string
  readonly cookie: string
  readonly env: Environment
  readonly log: { warn(message: string): void }
}

const MAX_WAIT_MS = 2000

/**
 * Never rejects: a failure is only logged. A cache with the same state directory knows already; one
 * with another key ignores the cookie.
 */
export async function endCacheSession({ url, cookie, env, log }: CacheLogoutOptions) {
  const target = url === '' ? null : parseHttpTarget(`${renderCacheBase(url)}/ui/logout`)
  if (target === null) return
  try {
    await askOnce(env, target, {
      method: 'POST',
      headers: { cookie },
      redirects: 'answer',
      maxBytes: 65_536,
      timeoutMs: MAX_WAIT_MS,
    })
  } catch (thrown) {
    log.warn(`could not end the session at the cache service: ${renderError(thrown)}`)
  }
}
