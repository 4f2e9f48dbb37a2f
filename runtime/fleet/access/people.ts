/** Keeps the people who log in with a name, and whose sessions hold: read from memory, on disk before a change resolves. */
import { randomBytes } from 'node:crypto'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import { isSameReach } from '../../kit/web/answers/rules/reach.ts'
import type { Database } from '../state/database.ts'
import { createOwnerRows, createOwnSessions, endAll, type KeptOwner } from './owner-rows.ts'
import type { NewPerson, Person, PersonRights } from './rules/person.ts'

export type People = ReturnType<typeof createPeople>

/** Creates the store of people and of who has which sessions. Lookups come from memory. */
export function createPeople(
  database: Database,
  { now = () => new Date() }: { now?(): Date } = {},
) {
  const rows = createOwnerRows(database, now)
  const { current, update } = rows

  const list = (): readonly Person[] =>
    [...current().values()].flatMap(({ person }) => person ?? [])

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
      const obstacle = await rows.add(person, password)
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
      const person = current().get(id)?.person ?? null
      return (await rows.remove(id)) ? person : null
    },
    openSessions: rows.openSessions,
    /** Whose sessions hold. */
    sessions: createOwnSessions(rows, now),
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
