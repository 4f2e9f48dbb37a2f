/** Adds and removes people and changes their roles and passwords, by one rule for the page and the command; and who may still act. */
import { randomBytes } from 'node:crypto'
import type { Database } from '#fleet/state/database.ts'
import type { JournalEntry, Requester } from '#fleet/state/journal.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { checkNewPassword, type NewPasswordRefusal } from '#kit/web/access/rules/login-throttle.ts'
import {
  canSee,
  isSameReach,
  permits,
  reachOf,
  type Role,
  type Scope,
  scopesOf,
} from '#kit/web/answers/rules/rights.ts'
import { createOwnerRows, createOwnSessions, endAll, type KeptOwner } from './owner-rows.ts'
import { hashPassword } from './passwords.ts'
import {
  type NameRefusal,
  type NewPerson,
  parsePersonName,
  parseScope,
  type Person,
  type PersonRights,
  type ScopeRefusal,
} from './rules/person.ts'
import type { Tokens } from './tokens.ts'

export type PersonRefusal =
  | NameRefusal
  | NewPasswordRefusal
  | ScopeRefusal
  | 'name-taken'
  | 'too-many'
  /** Their provider decides their role and checks their password. */
  | 'of-provider'
  | 'has-password'
  | 'unknown'

interface AccountsDependencies {
  readonly people: People
  readonly tokens: Pick<Tokens, 'list' | 'revoke'>
  record(entry: JournalEntry): Promise<void>
}

interface GivenRights {
  readonly role?: Role
  /** The labels of their scope; null: no scope. */
  readonly labels?: readonly string[] | null
}

interface NewAccount {
  readonly name: string
  readonly role: Role
  readonly password: string
  readonly labels?: readonly string[] | null
}

export type Accounts = ReturnType<typeof createAccounts>

export function createAccounts({ people, tokens, record }: AccountsDependencies) {
  const note = createNote(record)

  return {
    async add(given: NewAccount, by: Requester): Promise<Result<Person, PersonRefusal>> {
      const name = parsePersonName(given.name)
      if (!name.ok) return name
      const fine = checkNewPassword(given.password, null)
      if (!fine.ok) return fine
      const labels = parseLabels(given.labels ?? null)
      if (!labels.ok) return labels
      const { role } = given
      const person = { name: name.value, role, labels: labels.value }
      const added = await people.add(person, await hashPassword(given.password))
      const details = { role, labels: labels.value }
      if (added.ok) await note('added', by, added.value, [`was added (${role})`, details])
      return added
    },
    /** Their sessions end, even if nothing changes. Omitted rights stay. */
    async setRights(
      id: string,
      { role, labels }: GivenRights,
      by: Requester,
    ): Promise<Result<Person, PersonRefusal>> {
      const scope = labels === undefined ? undefined : parseLabels(labels)
      if (scope?.ok === false) return scope
      const before = people.find(id)
      if (isOfProvider(before)) return refuse('of-provider')
      const rights = { ...(role && { role }), ...(scope && { labels: scope.value }) }
      const changed = await people.setRights(id, rights)
      if (before === null || changed === null) return refuse('unknown')
      const { done, changes } = describeChange(before, changed)
      await note('changed', by, changed, [done, { changes }])
      return accept(changed)
    },
    /** Their sessions end; someone who changes their own password logs in again. */
    async setPassword(
      id: string,
      password: string,
      by: Requester,
    ): Promise<Result<Person, PersonRefusal>> {
      const fine = checkNewPassword(password, null)
      if (!fine.ok) return fine
      if (isOfProvider(people.find(id))) return refuse('of-provider')
      const hash = await hashPassword(password)
      const changed = await people.setPassword(id, hash)
      if (changed === null) return refuse('unknown')
      await note('password', by, changed, ['has a new password', null])
      return accept(changed)
    },
    setBlocked: createBlocking(people, note),
    async remove(id: string, by: Requester): Promise<Result<Person, PersonRefusal>> {
      const removed = await people.remove(id)
      if (removed === null) return refuse('unknown')
      const owned = (await tokens.list()).filter(({ owner }) => owner === id)
      for (const token of owned) await tokens.revoke(token.id)
      const names = owned.map(({ name }) => name)
      await note('removed', by, removed, ['was removed', { revoked_tokens: names }])
      return accept(removed)
    },
  }
}

/** A blocked person and their tokens have no role until the next login after unblocking. */
const createBlocking =
  (people: People, note: ReturnType<typeof createNote>) =>
  async (id: string, isBlocked: boolean, by: Requester): Promise<Result<Person, PersonRefusal>> => {
    const before = people.find(id)
    if (before !== null && !isOfProvider(before)) return refuse('has-password')
    const changed = await people.setBlocked(id, isBlocked)
    if (changed === null) return refuse('unknown')
    const done = isBlocked ? 'was blocked' : 'may log in again'
    await note(isBlocked ? 'blocked' : 'unblocked', by, changed, [done, null])
    return accept(changed)
  }

export const createNote =
  (record: AccountsDependencies['record']) =>
  (
    kind: string,
    { actor, ip }: Requester,
    person: Person,
    [done, details]: readonly [string, JournalEntry['details']],
  ) =>
    record({
      kind: `auth.person.${kind}`,
      subject_kind: 'auth',
      subject_id: person.name,
      actor,
      source_ip: ip,
      summary: `${person.name} ${done}`,
      details,
    })

const parseLabels = (
  labels: readonly string[] | null,
): Result<readonly string[] | null, ScopeRefusal> =>
  labels === null ? accept(null) : parseScope(labels)

/** The change as a clause, and the fields that changed. */
export function describeChange(before: Person, after: Person) {
  const isSameScope = isSameReach(before.labels, after.labels)
  const scope = { labels: { before: before.labels, after: after.labels } }
  const changes = {
    ...(before.role !== after.role && { role: { before: before.role, after: after.role } }),
    ...(!isSameScope && scope),
  }
  return { done: isSameScope ? 'has a new role' : 'has a new scope', changes }
}

const isOfProvider = (person: Person | null): boolean => (person?.provider ?? null) !== null

// Keeps the people who log in with a name, and their sessions: read from memory, on disk before a change resolves.

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

export interface Standing {
  /** Why `actor` may do nothing more; null: they may. `since`: when they began, an ISO time. */
  refuse(actor: string, scope: Scope, since?: string): string | null
  /** Whether a machine with these labels is in their scope. */
  canSee(actor: string, labels: readonly string[]): boolean
}

interface StandingDependencies {
  readonly people: Pick<People, 'findByName'>
  readonly tokens: Pick<Tokens, 'hasName'>
}

const PERSON = /^(?:person:|token:[^@]*@)(.+)$/
const TOKEN = /^token:([^@]+)/

const nameOf = (actor: string): string | null => PERSON.exec(actor)?.[1] ?? null

export function createStanding({ people, tokens }: StandingDependencies): Standing {
  const find = (name: string, since: string): Person | null => {
    const person = people.findByName(name)
    // Somebody else may have the name by now.
    return person === null || (since !== '' && person.created_at > since) ? null : person
  }
  return {
    refuse(actor, scope, since = '') {
      const token = TOKEN.exec(actor)?.[1]
      if (token !== undefined && !tokens.hasName(token)) return `The token ${token} was revoked`
      const name = nameOf(actor)
      if (name === null) return null
      const person = find(name, since)
      if (person === null) return `${name} was removed`
      return permits(scopesOf(person.role), scope) ? null : `${name} may no longer do this`
    },
    canSee(actor, labels) {
      const name = nameOf(actor)
      const person = name === null ? null : people.findByName(name)
      return name === null || (person !== null && canSee(reachOf(person), labels))
    },
  }
}

export const UNCHANGED: Standing = { refuse: () => null, canSee: () => true }
