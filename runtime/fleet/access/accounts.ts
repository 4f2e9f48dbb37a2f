/** Adds and removes people and changes their roles and passwords, by one rule for the page and the command. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isSameReach } from '#kit/web/answers/rules/reach.ts'
import type { Role } from '#kit/web/answers/rules/rights.ts'
import { checkNewPassword, type NewPasswordRefusal } from '#kit/web/access/rules/new-password.ts'
import type { JournalEntry, Requester } from '#fleet/state/journal.ts'
import { hashPassword } from './passwords.ts'
import type { People } from './people.ts'
import { parseScope, type ScopeRefusal } from './rules/label-scope.ts'
import { parsePersonName, type NameRefusal, type Person } from './rules/person.ts'
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
      await note('password', by, changed, ['got another password', null])
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
  return { done: isSameScope ? 'got another role' : 'got another scope', changes }
}

const isOfProvider = (person: Person | null): boolean => (person?.provider ?? null) !== null
