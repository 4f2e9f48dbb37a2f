/** Keeps the people who log in with a name: read from memory, on disk before a change resolves. */
import { randomBytes } from 'node:crypto'
import { parseJson } from '../../kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { Database } from '../state/database.ts'
import { readText, readTextOrNull, type Row } from '../state/sqlite.ts'
import {
  MAX_PEOPLE,
  PersonRecordSchema,
  type NewPerson,
  type Person,
  type PersonRights,
} from './rules/person.ts'

export type People = ReturnType<typeof createPeople>

interface KeptPerson {
  readonly person: Person
  /** The hash of their password. */
  readonly password: string | null
}

type ChangePerson = (before: KeptPerson) => KeptPerson

/** Creates the store of people. Lookups come from memory. */
export function createPeople(
  database: Database,
  { now = () => new Date() }: { now?(): Date } = {},
) {
  let kept: ReadonlyMap<string, KeptPerson> = new Map()
  let epoch: number | null = null

  const current = () => {
    const present = database.epoch()
    if (present !== epoch) {
      kept = new Map(database.sql.all(ALL).flatMap(readRow))
      epoch = present
    }
    return kept
  }

  const list = (): readonly Person[] => [...current().values()].map(({ person }) => person)

  /** What `change` makes of the row; null where there is none. */
  async function update(id: string, change: ChangePerson): Promise<Person | null> {
    const at = now().toISOString()
    const changed = await database.write((sql) => {
      const [found] = sql.all(`${SELECT} WHERE id = ? AND removed_at IS NULL`, id).flatMap(readRow)
      if (found === undefined) return null
      const { person, password } = change(found[1])
      sql.run(CHANGE, renderRecord(person), password, at, id)
      return person
    })
    epoch = null
    return changed
  }

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
      const obstacle = await database.write((sql) => {
        const known = sql.all(ALL).flatMap(readRow)
        if (known.some(([, each]) => each.person.name === person.name)) return 'name-taken'
        if (known.length >= MAX_PEOPLE) return 'too-many'
        sql.run(ADD, person.id, renderRecord(person), password, person.created_at)
        return null
      })
      epoch = null
      return obstacle === null ? accept(person) : refuse(obstacle)
    },
    /** What is left out stays. Null: there is nobody with that id. */
    setRights: (id: string, rights: Partial<PersonRights>): Promise<Person | null> =>
      update(id, (before) => ({ ...before, person: { ...before.person, ...rights } })),
    /** When they log in, and the rights that their provider gives them then; nothing changes for somebody who is blocked. */
    storeLogin: (id: string, rights: Partial<PersonRights>): Promise<Person | null> =>
      update(id, (before) => admit(before, rights, now().toISOString())),
    /** Who is blocked has no role; a role comes back with the next login. */
    setBlocked: (id: string, isBlocked: boolean): Promise<Person | null> =>
      update(id, (before) => block(before, isBlocked ? now().toISOString() : null)),
    setPassword: (id: string, password: string): Promise<Person | null> =>
      update(id, (before) => ({ ...before, password })),
    /** Resolves to who it was; null: there was nobody with that id. */
    async remove(id: string): Promise<Person | null> {
      const at = now().toISOString()
      const person = current().get(id)?.person ?? null
      const isGone = await database.write((sql) => sql.run(REMOVE, at, at, id) > 0)
      epoch = null
      return isGone ? person : null
    },
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

const admit = (before: KeptPerson, rights: Partial<PersonRights>, seen_at: string): KeptPerson =>
  before.person.blocked_at === null
    ? { ...before, person: { ...before.person, ...rights, seen_at } }
    : before

const block = (before: KeptPerson, blocked_at: string | null): KeptPerson => ({
  ...before,
  person: { ...before.person, role: null, blocked_at },
})

/** Leaves out the id, and what somebody with a password does not have. */
const renderRecord = (person: Person): string =>
  JSON.stringify({
    name: person.name,
    role: person.role,
    labels: person.labels ?? undefined,
    created_at: person.created_at,
    provider: person.provider ?? undefined,
    seen_at: person.seen_at ?? undefined,
    blocked_at: person.blocked_at ?? undefined,
  })

/** Rows of people who were removed stay, so that an older state brings nobody back. */
const SELECT = 'SELECT id, record, password FROM people'
const ALL = `${SELECT} WHERE removed_at IS NULL ORDER BY json_extract(record, '$.name'), id`
const ADD = 'INSERT INTO people (id, record, password, updated_at) VALUES (?, ?, ?, ?)'
const CHANGE = 'UPDATE people SET record = ?, password = ?, updated_at = ? WHERE id = ?'
const REMOVE = `UPDATE people SET removed_at = ?, updated_at = ?, password = NULL
  WHERE id = ? AND removed_at IS NULL`

/** Nothing for a row that cannot be read: that person cannot log in. */
function readRow(row: Row): readonly (readonly [string, KeptPerson])[] {
  const stored = PersonRecordSchema.safeParse(parseJson(readText(row, 'record')))
  if (!stored.success) return []
  const id = readText(row, 'id')
  return [[id, { person: { id, ...stored.data }, password: readTextOrNull(row, 'password') }]]
}
