/** Checks bearer tokens; wrong ones are recorded, and slow down further attempts. */
import type { Attempts } from './attempts.ts'
import { refuse } from '../answers/faults.ts'
import type { PlainEvent, RecordEvents } from '../answers/plain-event.ts'
import type { CallerPerson, Peer } from '../answers/caller.ts'
import type { Scope } from '../answers/rules/rights.ts'

/** What a token permits; a person's own rights limit it already. */
export interface KnownToken {
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Whose it is; null or absent: the administrator's. */
  readonly person?: CallerPerson | null
}

interface TokenSource {
  /** No guess finds a token that a program made, so that these are looked up at any time. */
  find(text: string): KnownToken | null
  /**
   * Finds a secret that a person chose. It is called only for addresses that have not just guessed
   * wrong: hashing is slow.
   */
  findChosen?(text: string): KnownToken | null
}

export type TokenCheck = ReturnType<typeof createTokenCheck>

interface TokenCheckDependencies {
  readonly tokens: TokenSource
  readonly attempts: Attempts
  readonly recordAll: RecordEvents
}

/** Tokens that programs made are never slowed down. */
export function createTokenCheck({ tokens, attempts, recordAll }: TokenCheckDependencies) {
  const findChosen = (bearer: string) => tokens.findChosen?.(bearer) ?? null

  return {
    /** Null for a wrong one; throws a 429 while its address has to wait. */
    check(bearer: string, { ip }: Peer): KnownToken | null {
      const made = tokens.find(bearer)
      if (made !== null) return made
      const wait = attempts.waitOf(ip)
      if (wait > 0) {
        const detail = `too many wrong tokens from this address: try again in ${wait} s`
        throw refuse(429, detail, { headers: { 'retry-after': String(wait) } })
      }
      const chosen = findChosen(bearer)
      if (chosen !== null) {
        attempts.forgive(ip)
        return chosen
      }
      // Nobody's answer waits for the record.
      if (attempts.count(ip)) void recordAll([WRONG], { subject_id: null, actor: 'operator', ip })
      return null
    },
    find: (bearer: string): KnownToken | null => tokens.find(bearer) ?? findChosen(bearer),
  }
}

const WRONG: PlainEvent = {
  kind: 'auth.token.failed',
  subject_kind: 'auth',
  summary: 'Wrong token',
  details: null,
}
