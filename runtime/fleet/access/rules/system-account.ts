/** What the tools of the operating system say of an account's password, and what they accept. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** PAM's helper reads 512 bytes including the final NUL. */
const MAX_BYTES = 511

/**
 * Input of `unix_chkpwd`. A NUL would end the password early, so that any suffix were right; a
 * longer one would be cut.
 */
export function encodePassword(given: string): Result<string, 'unusable'> {
  const isUsable =
    given !== '' && !given.includes('\0') && Buffer.byteLength(given, 'utf8') <= MAX_BYTES
  return isUsable ? accept(`${given}\0`) : refuse('unusable')
}

export const NO_PASSWORD = '\0'

export function parseVerdict(exitCode: number): 'right' | 'wrong' | null {
  if (exitCode === 0) return 'right'
  return exitCode === 7 ? 'wrong' : null
}

/** The second word of `passwd -S`; null: unknown. */
export function parseAccountStatus(text: string): 'set' | 'locked' | 'none' | null {
  const word = /^\S+ (\w+)/.exec(text)?.[1] ?? ''
  return STATUSES[word] ?? null
}

const STATUSES: Readonly<Record<string, 'set' | 'locked' | 'none'>> = {
  P: 'set',
  PS: 'set',
  L: 'locked',
  LK: 'locked',
  NP: 'none',
}

export const parseNoNewPrivileges = (status: string): boolean => /^NoNewPrivs:\s*1$/m.test(status)
