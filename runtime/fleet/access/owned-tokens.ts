/** Finds tokens with the rights of whoever owns them: none of a person who was removed, nor more than theirs. */
import { narrowScopes, scopesOf } from '#kit/web/answers/rules/rights.ts'
import type { People } from './accounts.ts'
import type { TokenRecord, Tokens } from './tokens.ts'
import type { Person } from './rules/person.ts'

interface OwnedToken extends TokenRecord {
  /** Null: the administrator. */
  readonly person: Person | null
}

export function createOwnedTokens(
  tokens: Pick<Tokens, 'find'>,
  people: Pick<People, 'find'> | undefined,
) {
  return {
    /** Null: unknown, or its owner is gone. Never waits for a disk. */
    find(text: string): OwnedToken | null {
      const token = tokens.find(text)
      if (token === null) return null
      if (token.owner === null) return { ...token, person: null }
      const person = people?.find(token.owner) ?? null
      if (person === null) return null
      return { ...token, scopes: narrowScopes(token.scopes, scopesOf(person.role)), person }
    },
  }
}
