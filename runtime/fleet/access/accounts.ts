/** Adds and removes people and changes their roles and passwords, by one rule for the page and the command. */
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { Role } from '../../kit/web/answers/rules/rights.ts'
import {
  checkNewPassword,
  type NewPasswordRefusal,
} from '../../kit/web/access/rules/new-password.ts'
import type { JournalEntry, Requester } from '../state/journal.ts'
import { hashPassword } from './passwords.ts'
import type { People } from './people.ts'
import { parsePersonName, type NameRefusal, type Person } from './rules/person.ts'
import type { Tokens } from './tokens.ts'

export type PersonRefusal =
  | NameRefusal
  | NewPasswordRefusal
  | 'name-taken'
  | 'too-many'
  /** There is nobody with that id, or not any more. */
  | 'unknown'

interface AccountsDependencies {
  readonly people: People
  readonly tokens: Pick<Tokens, 'list' | 'revoke'>
  /** Ends every session of a person, wherever they are logged in. */
  endSessions(id: string): Promise<void>
  record(entry: JournalEntry): Promise<void>
}

export type Accounts = ReturnType<typeof createAccounts>

/** What takes something away counts at the next request of the person; each change is on record. */
export function createAccounts({ people, tokens, endSessions, record }: AccountsDependencies) {
  const note = (
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

  return {
    async add(
      given: { readonly name: string; readonly role: Role; readonly password: string },
      by: Requester,
    ): Promise<Result<Person, PersonRefusal>> {
      const name = parsePersonName(given.name)
      if (!name.ok) return name
      const fine = checkNewPassword(given.password, null)
      if (!fine.ok) return fine
      const { role } = given
      const added = await people.add({ name: name.value, role }, await hashPassword(given.password))
      if (added.ok) await note('added', by, added.value, [`was added (${role})`, { role }])
      return added
    },
    async setRole(id: string, role: Role, by: Requester): Promise<Result<Person, PersonRefusal>> {
      const before = people.find(id)
      const changed = await people.setRole(id, role)
      if (before === null || changed === null) return refuse('unknown')
      await endSessions(id)
      const changes = { role: { before: before.role, after: role } }
      await note('changed', by, changed, ['got another role', { changes }])
      return accept(changed)
    },
    /** Ends their sessions; who changes their own password begins another one. */
    async setPassword(
      id: string,
      password: string,
      by: Requester,
    ): Promise<Result<Person, PersonRefusal>> {
      const fine = checkNewPassword(password, null)
      if (!fine.ok) return fine
      const changed = await people.setPassword(id, await hashPassword(password))
      if (changed === null) return refuse('unknown')
      await endSessions(id)
      await note('password', by, changed, ['got another password', null])
      return accept(changed)
    },
    /** Ends their sessions and revokes their tokens. */
    async remove(id: string, by: Requester): Promise<Result<Person, PersonRefusal>> {
      const removed = await people.remove(id)
      if (removed === null) return refuse('unknown')
      await endSessions(id)
      const owned = (await tokens.list()).filter(({ owner }) => owner === id)
      for (const token of owned) await tokens.revoke(token.id)
      const names = owned.map(({ name }) => name)
      await note('removed', by, removed, ['was removed', { revoked_tokens: names }])
      return accept(removed)
    },
  }
}
