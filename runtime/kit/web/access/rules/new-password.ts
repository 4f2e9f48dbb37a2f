/** Decides whether a new administrator password is acceptable; the page and the command ask the same. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { normalisePassword } from '#kit/foundation/password-hash.ts'

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
