/** Decides how long an address must wait after wrong passwords before its next attempt counts. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { normalisePassword } from '#kit/foundation/password-hash.ts'

export interface Failures {
  readonly count: number
  /** Milliseconds: until then nothing is checked. */
  readonly until: number
}

/** The first slips cost nothing; from then on each wait is twice the last, up to five minutes. */
const FREE = 3
const MAX_SECONDS = 300
/** An address is forgotten after an hour without attempts. */
const FORGET_MS = 3_600_000

/** Failures of an address, by whose password or token was guessed. */
export type AddressFailures = ReadonlyMap<string, Failures>

const isRemembered = ({ until }: Failures, now: number) => now - until < FORGET_MS

/**
 * Counts one more failure at `now` (milliseconds) and says until when nothing is checked. `others`: how
 * often the address failed elsewhere, which makes the wait as long.
 */
export function nextFailure(before: Failures | null, now: number, others = 0): Failures {
  const count = (before !== null && isRemembered(before, now) ? before.count : 0) + 1
  const all = count + others
  const seconds = all <= FREE ? 0 : Math.min(MAX_SECONDS, 2 ** (all - FREE - 1))
  return { count, until: now + seconds * 1000 }
}

/** What is an hour old is left out. */
export function addFailure(
  before: AddressFailures | null,
  account: string,
  now: number,
): AddressFailures {
  const others = new Map([...(before ?? [])].filter(([, each]) => isRemembered(each, now)))
  others.delete(account)
  const next = nextFailure(before?.get(account) ?? null, now, countAll(others))
  return others.set(account, next)
}

export const countAll = (failures: AddressFailures): number =>
  failures.values().reduce((sum, { count }) => sum + count, 0)

/** Whole seconds; 0: go on. */
export const waitOf = (failures: Failures | null, now: number): number =>
  failures === null ? 0 : Math.max(0, Math.ceil((failures.until - now) / 1000))

/** One host may have every address of an IPv4 /24, too. */
export const networkOf = (ip: string | null): string =>
  throttleKey(ip).replace(/^(\d+\.\d+\.\d+)\.\d+$/, '$1')

/** An IPv6 host owns its whole /64. */
export function throttleKey(ip: string | null): string {
  if (ip === null) return 'unknown'
  if (!ip.includes(':')) return ip
  const [head = '', tail = ''] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === '' ? [] : tail.split(':')
  const zeros = ip.includes('::') ? 8 - groups.length - after.length : 0
  return [...groups, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...after]
    .slice(0, 4)
    .join(':')
}

// Decides whether a new administrator password is acceptable; the page and the command ask the same.

export const MIN_PASSWORD_LENGTH = 8
/** No login accepts a longer one. */
export const MAX_PASSWORD_LENGTH = 1024

export type NewPasswordRefusal = 'too-short' | 'too-long' | 'differs' | 'control-characters'

/** `repeated`: null where nobody was asked to type it twice. */
export function checkNewPassword(
  password: string,
  repeated: string | null,
): Result<null, NewPasswordRefusal> {
  if ([...normalisePassword(password)].length < MIN_PASSWORD_LENGTH) return refuse('too-short')
  if (password.length > MAX_PASSWORD_LENGTH) return refuse('too-long')
  // No login form and no terminal can type them.
  if (/\p{Cc}/u.test(password)) return refuse('control-characters')
  return repeated === null || repeated === password ? accept(null) : refuse('differs')
}
