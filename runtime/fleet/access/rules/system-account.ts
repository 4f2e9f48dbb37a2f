/** What the tools of the operating system say of an account's password, and what they accept. */
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'

/** The helper of PAM reads 512 bytes, the NUL at the end included. */
const MAX_BYTES = 511

/**
 * The password as `unix_chkpwd` reads it from its standard input. A NUL would end it early, so that
 * a password would be right whatever follows it; what is too long would be cut.
 */
export function encodePassword(given: string): Result<string, 'unusable'> {
  const isUsable =
    given !== '' && !given.includes('\0') && Buffer.byteLength(given, 'utf8') <= MAX_BYTES
  return isUsable ? accept(`${given}\0`) : refuse('unusable')
}

/** No password at all: what `nullok` permits. */
export const NO_PASSWORD = '\0'

/** The exit code of `unix_chkpwd`, which is PAM's; null: it could not check anything. */
export function parseVerdict(exitCode: number): 'right' | 'wrong' | null {
  if (exitCode === 0) return 'right'
  return exitCode === 7 ? 'wrong' : null
}

/** The second word of `passwd -S`; null: it does not say. */
export function parseAccountStatus(text: string): 'set' | 'locked' | 'none' | null {
  const word = /^\S+ (\w+)/.exec(text)?.[1] ?? ''
  return STATUSES[word] ?? null
}

/** shadow's words, and those of other distributions' `passwd`. */
const STATUSES: Readonly<Record<string, 'set' | 'locked' | 'none'>> = {
  P: 'set',
  PS: 'set',
  L: 'locked',
  LK: 'locked',
  NP: 'none',
}

/** Whether `/proc/self/status` says that programs started from here gain no privileges. */
export const parseNoNewPrivileges = (status: string): boolean => /^NoNewPrivs:\s*1$/m.test(status)
