/** Decides whether what somebody began may go on: they still exist, and may still do it with each machine. */
import { reachOf, canSee, permits, scopesOf, type Scope } from '#kit/web/answers/rules/rights.ts'
import type { People } from './accounts.ts'
import type { Person } from './rules/person.ts'
import type { Tokens } from './tokens.ts'

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
      return permits(scopesOf(person.role), scope) ? null : `${name} may not do this any more`
    },
    canSee(actor, labels) {
      const name = nameOf(actor)
      const person = name === null ? null : people.findByName(name)
      return name === null || (person !== null && canSee(reachOf(person), labels))
    },
  }
}

export const UNCHANGED: Standing = { refuse: () => null, canSee: () => true }
