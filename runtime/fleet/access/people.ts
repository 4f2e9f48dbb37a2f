/** Keeps the people who log in with a name, and their sessions: read from memory, on disk before a change resolves. */
import { randomBytes } from 'node:crypto'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isSameReach } from '#kit/web/answers/rules/reach.ts'
import type { Database } from '#fleet/state/database.ts'
import { createOwnerRows, createOwnSessions, endAll, type KeptOwner } from './owner-rows.ts'
import type { NewPerson, Person, PersonRights } from './rules/person.ts'

export type People = ReturnType<typeof createPeople>

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
    list,
    find: (id: string): Person | null => current().get(id)?.person ?? null,
    findByName: (name: string): Person | null =>
      list().find((person) => person.name === name) ?? null,
    findByProvider: (issuer: string, subject: string): Person | null =>
      list().find(({ provider: by }) => by?.issuer === issuer && by.subject === subject) ?? null,
    passwordOf: (id: string): string | null => current().get(id)?.password ?? null,
    /** Both limits are checked in the transaction that stores it. */
    async add(
      given: NewPerson,
      password: string | null,
    ): Promise<Result<Person, 'name-taken' | 'too-many'>> {
      const person = createPerson(given, now().toISOString())
      const obstacle = await rows.add(person, password)
      return obstacle === null ? accept(person) : refuse(obstacle)
    },
    /** Their sessions end. Omitted rights stay. Null: no such person. */
    setRights: (id: string, rights: Partial<PersonRights>): Promise<Person | null> =>
      updatePerson(id, (before) => ({ ...before, ...rights })),
    /** Changed rights end their sessions. A blocked person stays unchanged. */
    storeLogin: (id: string, rights: Partial<PersonRights>): Promise<Person | null> =>
      update(id, (before) => admit(before, rights, now().toISOString())),
    /** A blocked person has no role until the next login after unblocking. Their sessions end. */
    setBlocked: (id: string, isBlocked: boolean): Promise<Person | null> =>
      updatePerson(id, (before) => ({
        ...before,
        role: null,
        blocked_at: isBlocked ? now().toISOString() : null,
      })),
    setPassword: (id: string, password: string): Promise<Person | null> =>
      update(id, (before) => endAll({ ...before, password })),
    async remove(id: string): Promise<Person | null> {
      const person = current().get(id)?.person ?? null
      return (await rows.remove(id)) ? person : null
    },
    openSessions: rows.openSessions,
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
