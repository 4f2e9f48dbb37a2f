/** Changes the administrator password: the current one is checked, and all other sessions end. */
import type { H3Event } from 'h3'
import { checkNewPassword, type NewPasswordRefusal } from './rules/new-password.ts'
import { accept, refuse, type Result } from '../../foundation/result.ts'
import type { CheckPassword } from './password-check.ts'
import type { PlainEvent, RecordEvents } from '../answers/plain-event.ts'
import { peerOf } from '../answers/caller.ts'
import type { Sessions } from './session.ts'

interface PasswordForm {
  readonly current: string
  readonly password: string
  readonly repeated: string
}

export type PasswordRefusal =
  | { readonly why: 'wrong' | 'unchanged' | 'elsewhere' | NewPasswordRefusal }
  | { readonly why: 'wait'; readonly seconds: number }

export type ChangePassword = (
  event: H3Event,
  form: PasswordForm,
) => Promise<Result<null, PasswordRefusal>>

interface PasswordChangeDependencies {
  readonly sessions: Sessions
  readonly check: CheckPassword
  /** Null: the password is the operating system's, and is changed there. */
  readonly setPassword: ((password: string) => Promise<void>) | null
  readonly recordAll: RecordEvents
}

const CHANGED: PlainEvent = {
  kind: 'auth.password.changed',
  subject_kind: 'auth',
  summary: 'The administrator password was changed; all other sessions have ended',
  details: null,
}
const FAILED: PlainEvent = {
  kind: 'auth.password.failed',
  subject_kind: 'auth',
  summary: 'The administrator password was not changed: wrong current password',
  details: null,
}

/**
 * Makes the function that changes the password; a refusal says why it stays. The browser that asked
 * stays logged in.
 */
export function createPasswordChange(parts: PasswordChangeDependencies): ChangePassword {
  const { sessions, recordAll, setPassword } = parts
  return async (event, { current, password, repeated }) => {
    if (setPassword === null) return refuse({ why: 'elsewhere' })
    const { ip, isSecure } = peerOf(event)
    const on = { subject_id: null, actor: 'operator', ip } as const
    const fine = checkNewPassword(password, repeated)
    if (!fine.ok) return refuse({ why: fine.refusal })
    const checked = await parts.check(current, ip)
    if (checked.kind === 'wait') return refuse({ why: 'wait', seconds: checked.seconds })
    if (checked.kind === 'wrong') {
      if (checked.isNoted) await recordAll([FAILED], on)
      return refuse({ why: 'wrong' })
    }
    if (password === current) return refuse({ why: 'unchanged' })
    await setPassword(password)
    event.res.headers.append('set-cookie', await sessions.endOthers(event, isSecure))
    await recordAll([CHANGED], on)
    return accept(null)
  }
}
