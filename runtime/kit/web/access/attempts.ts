/** Counts wrong passwords and tokens by address: each further guess waits longer. */
import {
  addFailure,
  countAll,
  throttleKey,
  waitOf,
  type AddressFailures,
} from './rules/login-throttle.ts'

export type Attempts = ReturnType<typeof createAttempts>

/** Addresses whose failures are remembered; the oldest are forgotten first. */
const MAX_ADDRESSES = 10_000
/** Wrong ones of an address that are put on record each; the rest are the same guessing. */
const MAX_NOTED = 50
/** The account whose secret is guessed unless another is named. */
const ADMINISTRATOR = ''
/** The account of names that nobody has: no guess at them can be right. */
export const NOBODY = 'nobody'

/**
 * Creates a counter; each secret that can be guessed has its own, so that what one counts does not
 * slow the other. `elapsed` is a clock that nobody sets, in milliseconds: a wait is as long as it
 * was said to be.
 */
export function createAttempts(elapsed = () => performance.now()) {
  const failures = new Map<string, AddressFailures>()
  return {
    /** Whole seconds until something of this address is checked again, whoever asks; 0: now. */
    waitOf(ip: string | null): number {
      const now = elapsed()
      const waits = failures
        .get(throttleKey(ip))
        ?.values()
        .map((each) => waitOf(each, now))
      return Math.max(0, ...(waits ?? []))
    },
    /** One that is wrong, or not known to be right yet; whether it goes on record. */
    count(ip: string | null, account: string = ADMINISTRATOR): boolean {
      const key = throttleKey(ip)
      const next = addFailure(failures.get(key) ?? null, account, elapsed())
      // Deleted first, so that the newest stand last.
      failures.delete(key)
      failures.set(key, next)
      if (failures.size > MAX_ADDRESSES) failures.delete(failures.keys().next().value ?? '')
      return countAll(next) <= MAX_NOTED
    },
    /** The address has shown that it knows the secret of one account: guesses at others stay. */
    forgive(ip: string | null, account: string = ADMINISTRATOR): void {
      const key = throttleKey(ip)
      const left = new Map(failures.get(key))
      left.delete(account)
      left.delete(NOBODY)
      if (left.size === 0) failures.delete(key)
      else failures.set(key, left)
    },
  }
}
