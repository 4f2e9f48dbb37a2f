/** Checks passwords wherever they are typed: slowed by address, limited by network. */
import { networkOf } from './rules/login-throttle.ts'
import { NOBODY, type Attempts } from './attempts.ts'
import { createLoginLanes } from './login-lanes.ts'

type PasswordVerdict =
  | { readonly kind: 'right' }
  /** `isNoted`: few enough so far to be recorded as an event. */
  | { readonly kind: 'wrong'; readonly isNoted: boolean }
  /** Nothing was checked: the address has to wait. */
  | { readonly kind: 'wait'; readonly seconds: number }

interface CheckedPerson {
  /** Null: nobody has the name that was given. */
  readonly id: string | null
  isRight(given: string): Promise<boolean>
}

/** `ip` null: there is no socket. The administrator's password is checked unless a person is given. */
export type CheckPassword = (
  given: string,
  ip: string | null,
  person?: CheckedPerson,
) => Promise<PasswordVerdict>

/** `wait` says in how many seconds an address may try again. */
export function createPasswordCheck(parts: {
  /** Wrong passwords, wherever they are given. */
  readonly attempts: Attempts
  checkPassword(given: string): Promise<boolean>
}): CheckPassword {
  const { attempts } = parts
  const lanes = createLoginLanes()
  return async (given, ip, person) => {
    const seconds = attempts.waitOf(ip)
    if (seconds > 0) return { kind: 'wait', seconds }
    const checked = lanes.run(networkOf(ip), () =>
      person === undefined ? parts.checkPassword(given) : person.isRight(given),
    )
    if (checked === null) return { kind: 'wait', seconds: 1 }
    // Counted before it is known to be wrong: many at once are no way around the delay.
    const account = person === undefined ? undefined : (person.id ?? NOBODY)
    const isNoted = attempts.count(ip, account)
    if (!(await checked)) return { kind: 'wrong', isNoted }
    attempts.forgive(ip, account)
    return { kind: 'right' }
  }
}
