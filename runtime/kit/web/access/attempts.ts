/** Counts wrong passwords and tokens by address: each further guess waits longer. */
import { nextFailure, throttleKey, waitOf, type Failures } from './rules/login-throttle.ts'

export type Attempts = ReturnType<typeof createAttempts>

/** Addresses whose failures are remembered; the oldest are forgotten first. */
const MAX_ADDRESSES = 10_000
/** Wrong ones of an address that are put on record each; the rest are the same guessing. */
const MAX_NOTED = 50

/**
 * Creates a counter; each secret that can be guessed has its own, so that what one counts does not
 * slow the other. `elapsed` is a clock that nobody sets, in milliseconds: a wait is as long as it
 * was said to be.
 */
export function createAttempts(elapsed = () => performance.now()) {
  const failures = new Map<string, Failures>()
  return {
    /** Whole seconds until something of this address is checked again; 0: now. */
    waitOf: (ip: string | null) => waitOf(failures.get(throttleKey(ip)) ?? null, elapsed()),
    /** One that is wrong, or not known to be right yet; whether it goes on record. */
    count(ip: string | null): boolean {
      const key = throttleKey(ip)
      const next = nextFailure(failures.get(key) ?? null, elapsed())
      // Deleted first, so that the newest stand last.
      failures.delete(key)
      failures.set(key, next)
      if (failures.size > MAX_ADDRESSES) failures.delete(failures.keys().next().value ?? '')
      return next.count <= MAX_NOTED
    },
    /** The address has shown that it knows the secret. */
    forgive(ip: string | null): void {
      failures.delete(throttleKey(ip))
    },
  }
}
