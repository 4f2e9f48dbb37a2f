/** Checks passwords wherever they are typed: slowed by address, limited by network. */
import {
  networkOf,
  addFailure,
  countAll,
  throttleKey,
  waitOf,
  type AddressFailures,
  checkNewPassword,
  type NewPasswordRefusal,
} from './rules/login-throttle.ts'
import type { H3Event } from 'h3'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  type PlainEvent,
  type RecordEvents,
  callerOf,
  peerOf,
  personOf,
  type CallerPerson,
} from '../answers/caller.ts'
import type { Sessions } from './session.ts'

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

// Counts wrong passwords and tokens by address: each further guess waits longer.

export type Attempts = ReturnType<typeof createAttempts>

/** Addresses whose failures are remembered; the oldest are forgotten first. */
const MAX_ADDRESSES = 10_000
/** Wrong ones of an address that are put on record each; the rest are the same guessing. */
const MAX_NOTED = 50
/** The account whose secret is guessed unless another is named. */
const ADMINISTRATOR = ''
/** The account of names that nobody has: no guess at them can be right. */
const NOBODY = 'nobody'

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

// Changes the password of whoever is logged in: the current one is checked, and their other sessions end.

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

/** Each check is slow on purpose, and takes memory and a thread that boot files need too. */
const MAX_CHECKS = 4
/** Half of them stay free for everybody else. */
const MAX_CHECKS_OF_NETWORK = 2
const MAX_WAITING_OF_NETWORK = 16
const MAX_WAITING = 256

interface LoginLane {
  checking: number
  /** The attempts that wait, in the order in which they came. */
  readonly waiting: (() => void)[]
}

function createLoginLanes() {
  /** Whose turn was longest ago stands first. */
  const lanes = new Map<string, LoginLane>()
  let [checking, waiting] = [0, 0]

  function startNext(): void {
    while (checking < MAX_CHECKS) {
      const next = lanes.entries().find(([, lane]) => isReady(lane))
      if (next === undefined) return
      const [network, lane] = next
      lanes.delete(network)
      lanes.set(network, lane)
      checking += 1
      lane.checking += 1
      waiting -= 1
      lane.waiting.shift()?.()
    }
  }

  async function wait<T>(network: string, lane: LoginLane, check: () => Promise<T>): Promise<T> {
    const turn = Promise.withResolvers<void>()
    waiting += 1
    lane.waiting.push(turn.resolve)
    startNext()
    await turn.promise
    try {
      return await check()
    } finally {
      checking -= 1
      lane.checking -= 1
      if (lane.checking === 0 && lane.waiting.length === 0) lanes.delete(network)
      startNext()
    }
  }

  return {
    /** Null: too many of this network, or of all, wait already. */
    run<T>(network: string, check: () => Promise<T>): Promise<T> | null {
      const lane = lanes.get(network) ?? { checking: 0, waiting: [] }
      if (waiting >= MAX_WAITING || lane.waiting.length >= MAX_WAITING_OF_NETWORK) return null
      lanes.set(network, lane)
      return wait(network, lane, check)
    },
  }
}

const isReady = ({ checking, waiting }: LoginLane): boolean =>
  waiting.length > 0 && checking < MAX_CHECKS_OF_NETWORK
