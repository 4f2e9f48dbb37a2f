/** Keeps the people who log in with a name, and whose sessions hold: read from memory, on disk before a change resolves. */
import { randomBytes } from 'node:crypto'
import { parseJson } from '../../kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { SessionBook, SessionClaims } from '../../kit/web/access/session.ts'
import type { CallerPerson } from '../../kit/web/answers/caller.ts'
import { isSameReach } from '../../kit/web/answers/rules/reach.ts'
import type { Database } from '../state/database.ts'
import { readOnce, readText, readTextOrNull, type Row, type Sql } from '../state/sqlite.ts'
import {
  MAX_PEOPLE,
  OwnSessionsSchema,
  PersonRecordSchema,
  type NewPerson,
  type OwnSessions,
  type Person,
  type PersonRights,
} from './rules/person.ts'

export type People = ReturnType<typeof createPeople>

interface KeptOwner {
  /** Null: the administrator, whom nobody lists. */
  readonly person: Person | null
  /** The hash of their password. */
  readonly password: string | null
  readonly sessions: OwnSessions
}

/** The row of the sessions without a name; no person has such an id. */
const NAMELESS = 'administrator'

/** Whose sessions hold, for a server. */
export interface ServerSessions extends SessionBook {
  /** Ends all that have no name. */
  endNameless(): Promise<void>
}

/** Nobody logs out as often in a week; more end all sessions of theirs. */
const MAX_ENDED = 1000

/** Creates the store of people and of who has which sessions. Lookups come from memory. */
export function createPeople(
  database: Database,
  { now = () => new Date() }: { now?(): Date } = {},
) {
  let kept: ReadonlyMap<string, KeptOwner> = new Map()
  let epoch: number | null = null

  const current = () => {
    const present = database.epoch()
    if (present !== epoch) {
      kept = new Map(database.sql.all(ALL).flatMap(readOwner))
      epoch = present
    }
    return kept
  }

  const list = (): readonly Person[] =>
    [...current().values()].flatMap(({ person }) => person ?? [])

  /** What failed may have been read before it was undone, so that everything is read again. */
  const write = <T>(work: (sql: Sql) => T): Promise<T> =>
    database.write(work).finally(() => (epoch = null))

  /** What `change` makes of the row; null where there is none, or nobody's. */
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

  const updatePerson = (id: string, change: (before: Person) => Person): Promise<Person | null> =>
    update(id, (before) =>
      before.person === null ? before : endAll({ ...before, person: change(before.person) }),
    )

  return {
    /** Lists everybody, by name. */
    list,
    find: (id: string): Person | null => current().get(id)?.person ?? null,
    findByName: (name: string): Person | null =>
      list().find((person) => person.name === name) ?? null,
    /** Finds whom a provider calls by a subject; null: nobody who is known here. */
    findByProvider: (issuer: string, subject: string): Person | null =>
      list().find(({ provider: by }) => by?.issuer === issuer && by.subject === subject) ?? null,
    /** The hash of somebody's password; null: they have none, or nobody has that id. */
    passwordOf: (id: string): string | null => current().get(id)?.password ?? null,
    /** Refused where the name is in use, or there are too many: decided as it is stored. */
    async add(
      given: NewPerson,
      password: string | null,
    ): Promise<Result<Person, 'name-taken' | 'too-many'>> {
      const person = createPerson(given, now().toISOString())
      const obstacle = await write((sql) => {
        const known = sql.all(ALL).flatMap((row) => readOwner(row)[0]?.[1].person ?? [])
        if (known.some(({ name }) => name === person.name)) return 'name-taken'
        if (known.length >= MAX_PEOPLE) return 'too-many'
        const owner = endAll({ person, password, sessions: NO_SESSIONS })
        sql.run(ADD, person.id, renderRecord(owner), password, person.created_at)
        return null
      })
      return obstacle === null ? accept(person) : refuse(obstacle)
    },
    /** What is left out stays; their sessions end. Null: there is nobody with that id. */
    setRights: (id: string, rights: Partial<PersonRights>): Promise<Person | null> =>
      updatePerson(id, (before) => ({ ...before, ...rights })),
    /**
     * When they log in, and the rights that their provider gives them then: others end their sessions.
     * Nothing changes for somebody who is blocked.
     */
    storeLogin: (id: string, rights: Partial<PersonRights>): Promise<Person | null> =>
      update(id, (before) => admit(before, rights, now().toISOString())),
    /** Who is blocked has no role; a role comes back with the next login. Their sessions end. */
    setBlocked: (id: string, isBlocked: boolean): Promise<Person | null> =>
      updatePerson(id, (before) => ({
        ...before,
        role: null,
        blocked_at: isBlocked ? now().toISOString() : null,
      })),
    /** Their sessions end. */
    setPassword: (id: string, password: string): Promise<Person | null> =>
      update(id, (before) => endAll({ ...before, password })),
    /** Resolves to who it was; null: there was nobody with that id. */
    async remove(id: string): Promise<Person | null> {
      const at = now().toISOString()
      const person = current().get(id)?.person ?? null
      const isGone = await write((sql) => sql.run(REMOVE, at, at, id) > 0)
      return isGone ? person : null
    },
    /**
     * To be awaited before anybody logs in: whoever has no mark yet gets one. Sessions of releases that
     * knew none have ended; so have those of everybody where `endsAll`.
     */
    async openSessions(endsAll = false): Promise<void> {
      const at = now().toISOString()
      const lacking = (row: Row) => endsAll || readOwner(row)[0]?.[1].sessions.mark === ''
      if (current().has(NAMELESS) && !database.sql.all(ALL).some(lacking)) return
      await write((sql) => {
        sql.run(ADD_NAMELESS, NAMELESS, at)
        for (const [id, owner] of sql.all(ALL).filter(lacking).flatMap(readOwner)) {
          sql.run(CHANGE, renderRecord(endAll(owner)), owner.password, at, id)
        }
      })
    },
    /** Whose sessions hold. */
    sessions: {
      markOf: (id) => current().get(id ?? NAMELESS)?.sessions.mark ?? '',
      admit: (session) => admitSession(current().get(ownerOf(session)), session),
      async end(id, session, until) {
        await update(id ?? NAMELESS, (before) => endOne(before, session, until, now()))
      },
      async endNameless() {
        await update(NAMELESS, endAll)
      },
    } satisfies ServerSessions,
  }
}

/** The sessions of the server whose `state.db` this is, for a program beside it, which changes nothing there. */
export const readSessions = (path: string): Pick<SessionBook, 'markOf' | 'admit'> => {
  // It is closed again at once, since that server may replace it.
  const find = (id: string) =>
    readOnce(path, `${SELECT} WHERE id = ? AND removed_at IS NULL`, id).flatMap(readOwner)[0]?.[1]
  return {
    markOf: (id) => find(id ?? NAMELESS)?.sessions.mark ?? '',
    admit: (session) => admitSession(find(ownerOf(session)), session),
  }
}

function createPerson(
  { name, role, labels, provider = null }: NewPerson,
  created_at: string,
): Person {
  const id = randomBytes(6).toString('hex')
  const seen_at = provider === null ? null : created_at
  return { id, name, role, labels, created_at, provider, seen_at, blocked_at: null }
}

function admit(before: KeptOwner, rights: Partial<PersonRights>, seen_at: string): KeptOwner {
  const { person } = before
  if (person === null || person.blocked_at !== null) return before
  const after = { ...before, person: { ...person, ...rights, seen_at } }
  const isSame =
    person.role === after.person.role && isSameReach(person.labels, after.person.labels)
  return isSame ? after : endAll(after)
}

const NO_SESSIONS: OwnSessions = { mark: '', ended: {} }

/** Sessions name another mark from here on: a number could come back with an older state. */
const endAll = (owner: KeptOwner): KeptOwner => ({
  ...owner,
  sessions: { mark: randomBytes(9).toString('base64url'), ended: {} },
})

/** Those that ended stay as long as there are few, as the clock may be wrong; too many end all. */
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

/** Leaves out the id, and what somebody with a password does not have. */
const renderRecord = ({ person, sessions: { mark, ended } }: KeptOwner): string =>
  JSON.stringify({
    name: person?.name,
    role: person?.role,
    labels: person?.labels ?? undefined,
    created_at: person?.created_at,
    provider: person?.provider ?? undefined,
    seen_at: person?.seen_at ?? undefined,
    blocked_at: person?.blocked_at ?? undefined,
    mark,
    ended: Object.keys(ended).length === 0 ? undefined : ended,
  })

/** Rows of people who were removed stay, so that an older state brings nobody back. */
const SELECT = 'SELECT id, record, password FROM people'
const ALL = `${SELECT} WHERE removed_at IS NULL ORDER BY json_extract(record, '$.name'), id`
const ADD = 'INSERT INTO people (id, record, password, updated_at) VALUES (?, ?, ?, ?)'
const ADD_NAMELESS = `INSERT INTO people (id, record, updated_at) VALUES (?, '{}', ?) ON CONFLICT DO NOTHING`
const CHANGE = 'UPDATE people SET record = ?, password = ?, updated_at = ? WHERE id = ?'
const REMOVE = `UPDATE people SET removed_at = ?, updated_at = ?, password = NULL
  WHERE id = ? AND removed_at IS NULL`

/** Nothing for a row that cannot be read: that person cannot log in. */
function readOwner(row: Row): readonly (readonly [string, KeptOwner])[] {
  const record = parseJson(readText(row, 'record'))
  const id = readText(row, 'id')
  const stored = PersonRecordSchema.safeParse(record)
  if (!stored.success && id !== NAMELESS) return []
  const person = stored.success && id !== NAMELESS ? { id, ...stored.data } : null
  const sessions = OwnSessionsSchema.safeParse(record).data ?? NO_SESSIONS
  return [[id, { person, password: readTextOrNull(row, 'password'), sessions }]]
}
