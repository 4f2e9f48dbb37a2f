/** Changes the password of whoever is logged in: the current one is checked, and their other sessions end. */
import type { H3Event } from 'h3'
import { checkNewPassword, type NewPasswordRefusal } from './rules/new-password.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { CheckPassword } from './password-check.ts'
import type { PlainEvent, RecordEvents } from '../answers/plain-event.ts'
import { callerOf, peerOf, personOf, type CallerPerson } from '../answers/caller.ts'
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
  /** Ends all sessions of the administrator; rejects where that cannot be stored. */
  readonly book: { endNameless(): Promise<void> }
  readonly check: CheckPassword
  /** Null: the password is the operating system's, and is changed there. */
  readonly setPassword: ((password: string) => Promise<void>) | null
  readonly recordAll: RecordEvents
  /** Absent: there is the administrator alone. */
  readonly ofPeople?: PeoplePasswords | undefined
}

/** The passwords of people; setting one ends all sessions of theirs, and is on record. */
export interface PeoplePasswords {
  /** Finds somebody as they are now. Null: they were removed. */
  findById(id: string): CallerPerson | null
  checkPassword(person: CallerPerson, given: string): Promise<boolean>
  setPassword(person: CallerPerson, password: string, ip: string | null): Promise<void>
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
  summary: 'A password was not changed: wrong current password',
  details: null,
}

/** A refusal says why the password stays. The browser that asked stays logged in. */
export function createPasswordChange(parts: PasswordChangeDependencies): ChangePassword {
  const { sessions, book, setPassword, recordAll, ofPeople } = parts

  function accountOf(event: H3Event) {
    const { ip, isSecure } = peerOf(event)
    const person = personOf(callerOf(event))
    if (person === null || ofPeople === undefined) {
      return {
        actor: 'operator' as const,
        checked: undefined,
        set:
          setPassword &&
          (async (password: string) => {
            // A crash behind the new password would keep them; and once more, for whoever logged in meanwhile.
            await book.endNameless()
            await setPassword(password)
            await book.endNameless()
          }),
        begin: () => [sessions.issue(event, isSecure)],
        changed: [CHANGED],
      }
    }
    return {
      actor: `person:${person.name}` as const,
      checked: {
        id: person.id,
        isRight: (given: string) => ofPeople.checkPassword(person, given),
      },
      set: (password: string) => ofPeople.setPassword(person, password, ip),
      // As they are in this moment: their role may have been changed since the session began.
      begin: () => {
        const present = ofPeople.findById(person.id)
        return present === null ? [] : [sessions.issue(event, isSecure, present)]
      },
      changed: [],
    }
  }

  return async (event, { current, password, repeated }) => {
    const account = accountOf(event)
    if (account.set === null) return refuse({ why: 'elsewhere' })
    const { ip } = peerOf(event)
    const on = { subject_id: null, actor: account.actor, ip }
    const fine = checkNewPassword(password, repeated)
    if (!fine.ok) return refuse({ why: fine.refusal })
    const checked = await parts.check(current, ip, account.checked)
    if (checked.kind === 'wait') return refuse({ why: 'wait', seconds: checked.seconds })
    if (checked.kind === 'wrong') {
      if (checked.isNoted) await recordAll([FAILED], on)
      return refuse({ why: 'wrong' })
    }
    if (password === current) return refuse({ why: 'unchanged' })
    await account.set(password)
    for (const cookie of account.begin()) event.res.headers.append('set-cookie', cookie)
    await recordAll(account.changed, on)
    return accept(null)
  }
}
