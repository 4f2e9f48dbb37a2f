/** Lets people in whom an OpenID provider names: their row, their role as of now, and the record of each change. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isSameReach } from '#kit/web/answers/rules/rights.ts'
import type { JournalEntry, Requester } from '#fleet/state/journal.ts'
import { createNote, describeChange, type People } from './accounts.ts'
import { parseScope, type Person, type ProviderIdentity } from './rules/person.ts'

export type AdmissionRefusal = 'no-role' | 'blocked' | 'too-many' | 'scope-long'

interface ProviderPeopleDependencies {
  readonly people: People
  record(entry: JournalEntry): Promise<void>
}

export function createProviderPeople(parts: ProviderPeopleDependencies) {
  const { people, record } = parts
  const note = createNote(record)

  /** A person without a role gets no row: a provider may know more people than fit. */
  async function add(
    identity: ProviderIdentity,
    called: string,
    ip: string | null,
  ): Promise<Result<Person, AdmissionRefusal>> {
    const { role, labels, issuer, subject } = identity
    if (role === null) return refuse('no-role')
    const provider = { issuer, subject }
    for (const name of identity.names) {
      const added = await people.add({ name, role, labels, provider }, null)
      if (added.ok) {
        const done = `was added by ${called} (${role})`
        await note('added', by(added.value, ip), added.value, [done, { role, labels, issuer }])
        return added
      }
      if (added.refusal === 'too-many') return refuse('too-many')
      // A parallel login of theirs may have been faster.
      const found = people.findByProvider(issuer, subject)
      if (found !== null) return await update(found, identity, called, ip)
    }
    return refuse('too-many')
  }

  async function update(
    before: Person,
    identity: ProviderIdentity,
    called: string,
    ip: string | null,
  ): Promise<Result<Person, AdmissionRefusal>> {
    const { role, labels } = identity
    const { id } = before
    if (before.blocked_at !== null) return refuse('blocked')
    const isNews = before.role !== role || !isSameReach(before.labels, labels)
    const changed = await people.storeLogin(id, { role, labels })
    if (changed === null) return await add(identity, called, ip)
    if (changed.blocked_at !== null) return refuse('blocked')
    if (isNews) {
      const { done, changes } = describeChange(before, changed)
      await note('changed', by(changed, ip), changed, [`${done}, set by ${called}`, { changes }])
    }
    return role === null ? refuse('no-role') : accept(changed)
  }

  return {
    /**
     * Returns the person with the role that the provider gives now. Removed rights end at their
     * next request. `provider`: its display name.
     */
    async admit(
      identity: ProviderIdentity,
      provider: string,
      ip: string | null,
    ): Promise<Result<Person, AdmissionRefusal>> {
      if (identity.labels !== null && !parseScope(identity.labels).ok) return refuse('scope-long')
      const found = people.findByProvider(identity.issuer, identity.subject)
      return found === null
        ? await add(identity, provider, ip)
        : await update(found, identity, provider, ip)
    },
  }
}

const by = ({ name }: Person, ip: string | null): Requester => ({ actor: `person:${name}`, ip })
