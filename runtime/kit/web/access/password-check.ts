/** Checks passwords wherever they are typed: slowed by address, limited by network. */
import { networkOf } from './rules/login-throttle.ts'
import type { Attempts } from './attempts.ts'
import { createLoginLanes } from './login-lanes.ts'

type PasswordVerdict =
  | { readonly kind: 'right' }
  /** `isNoted`: few enough so far to be recorded as an event. */
  | { readonly kind: 'wrong'; readonly isNoted: boolean }
  /** Nothing was checked: the address has to wait. */
  | { readonly kind: 'wait'; readonly seconds: number }

/**
 * `ip` null: there is no socket. `isRight` checks the password of somebody else than the
 * administrator, whose is checked unless it is given.
 */
export type CheckPassword = (
  given: string,
  ip: string | null,
  isRight?: (given: string) => Promise<boolean>,
) => Promise<PasswordVerdict>

/**
 * Makes the function that checks a password; `wait` says in how many seconds an address may try
 * again.
 */
export function createPasswordCheck(parts: {
  /** Wrong passwords, wherever they are given. */
  readonly attempts: Attempts
  checkPassword(given: string): Promise<boolean>
}): CheckPassword {
  const { attempts } = parts
  const lanes = createLoginLanes()
  return async (given, ip, isRight = parts.checkPassword) => {
    const seconds = attempts.waitOf(ip)
    if (seconds > 0) return { kind: 'wait', seconds }
    const checked = lanes.run(networkOf(ip), () => isRight(given))
    if (checked === null) return { kind: 'wait', seconds: 1 }
    // Counted before it is known to be wrong: many at once are no way around the delay.
    const isNoted = attempts.count(ip)
    if (!(await checked)) return { kind: 'wrong', isNoted }
    attempts.forgive(ip)
    return { kind: 'right' }
  }
}
