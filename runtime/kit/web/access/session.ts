/** A session: a signed, self-contained cookie that slides, and expires after 7 idle days. */
import { randomBytes } from 'node:crypto'
import type { H3Event } from 'h3'
import { z } from 'zod'
import { listSessions, renderSessions, SESSION_SECONDS } from '../../foundation/session-cookie.ts'
import { parseJson } from '../../foundation/json-reader.ts'
import type { CallerPerson } from '../answers/caller.ts'
import { reachOf } from '../answers/rules/reach.ts'
import { ROLES } from '../answers/rules/rights.ts'
import type { SignedOut } from './signed-out.ts'
import type { Secret } from './secret.ts'

/** A session in use is issued anew when it is this old. */
const RENEW_SECONDS = 3600
/** How long a session of a provider's person lasts after the provider's last word, in seconds. */
const PROVIDER_SECONDS = 12 * 3600
/** How far ahead of ours the clock of the server may have been that issued a session, in seconds. */
const AHEAD_SECONDS = 300

interface LoginSession {
  /** The value as it stands in the cookie. */
  readonly value: string
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly isStale: boolean
  /** How often all sessions had been ended before it began; null: an earlier release issued it. */
  readonly generation: number | null
  /** Whose it is; null: the administrator's. */
  readonly person: SessionPerson | null
}

interface SessionPerson extends CallerPerson {
  /** When they logged in, in seconds of the epoch; it stays as the session slides. */
  readonly from: number
  /** How often all sessions of theirs had been ended by then. */
  readonly gen: number
  /** When it ends however it is used, in seconds of the epoch; absent: it does not. */
  readonly until?: number | undefined
}

type Renewed = Pick<LoginSession, 'id' | 'generation' | 'person'>

export type Sessions = ReturnType<typeof createSessions>

interface SessionsDependencies {
  readonly secret: Secret
  readonly signedOut: SignedOut
  readonly now: () => Date
  /** Whether sessions without a name count; absent: they do. A cache with the same key opens them, too. */
  allowsNameless?(): boolean
  /**
   * Whether sessions of people go on as they are used; absent: they do. Not where nobody may learn that
   * a role was taken away: they end there as the server that opened them last said.
   */
  readonly renewsPeople?: boolean
}

/**
 * Creates what issues, reads and ends sessions. It returns `Set-Cookie` values for the caller to
 * send.
 */
export function createSessions(parts: SessionsDependencies) {
  const { signedOut, secret } = parts
  const read = createReader(parts)
  const { render, beginning, admit } = createRenderer(parts)

  /** Those of other servers stay in the cookie, unread. */
  const listOthers = (event: H3Event) =>
    sessionsOf(event).filter((value) => readSigned(value, secret) === null)

  const add = (event: H3Event, session: string, isSecure: boolean) =>
    renderSetCookie([session, ...listOthers(event)], isSecure)

  const issue = (event: H3Event, isSecure: boolean, person: CallerPerson | null = null) =>
    add(event, render(makeId(), admit(person)), isSecure)

  return {
    /** Begins one, of a person or of the administrator. A `Set-Cookie` value. */
    issue,
    /** Begins one of a person whom a provider has just named: it ends 12 hours later. A `Set-Cookie` value. */
    issueForProvider: (event: H3Event, isSecure: boolean, person: CallerPerson) =>
      add(
        event,
        render(
          makeId(),
          admit(person, Math.floor(parts.now().getTime() / 1000) + PROVIDER_SECONDS),
        ),
        isSecure,
      ),
    /** One that was read goes on. A `Set-Cookie` value. */
    renew: (event: H3Event, isSecure: boolean, { id, generation, person }: Renewed) =>
      add(event, render(id, person, generation), isSecure),
    /** Ends every session there is. A `Set-Cookie` value, for the one browser that stays logged in. */
    async endOthers(event: H3Event, isSecure: boolean): Promise<string> {
      await signedOut.addAll(beginning())
      return issue(event, isSecure)
    },
    /** Ends every session of a person: at the next request, wherever it comes from. */
    endPerson: signedOut.addPerson,
    /** `name=value`, as a browser sends it that is logged in nowhere else. */
    renderCookie: (id: string, person: CallerPerson | null) =>
      renderSessions([render(id, admit(person))]),
    /** Null for anything but a session of ours that still holds. */
    read(event: H3Event): LoginSession | null {
      for (const value of sessionsOf(event)) {
        const session = read(value)
        if (session !== null) return session
      }
      return null
    },
    /** Ends it for every copy of its cookie, of which the newest may be of this moment. */
    revoke: (id: string) => signedOut.add(id, endOf(beginning())),
    /** Whether one that was read holds still. */
    holds: ({ value }: Pick<LoginSession, 'value'>) => read(value) !== null,
    /** The `Set-Cookie` value that takes ours away, and deletes the cookie where none is left. */
    clear(event: H3Event, isSecure: boolean): string {
      const others = listOthers(event)
      return others.length > 0 ? renderSetCookie(others, isSecure) : renderDeletion(isSecure)
    },
  }
}

function createReader(parts: SessionsDependencies) {
  const { secret, signedOut, now, allowsNameless, renewsPeople = true } = parts
  const isVoid = (claims: z.infer<typeof Claims>): boolean =>
    hasEnded(signedOut, claims) || (claims.who === undefined && allowsNameless?.() === false)

  return (value: string): LoginSession | null => {
    const body = readSigned(value, secret)
    const claims = body === null ? null : parseClaims(body)
    if (claims === null || isVoid(claims)) return null
    // What we signed is good however far ahead it lies: the clock was wrong then, or is now.
    const present = Math.floor(now().getTime() / 1000)
    const age = present - claims.iat
    const person = claims.who ?? null
    if (age >= SESSION_SECONDS || isPast(person, present)) return null
    return {
      value,
      id: claims.sid,
      expiresAt: endOfClaims(claims) * 1000,
      isStale: age >= RENEW_SECONDS && (renewsPeople || person === null),
      generation: claims.gen ?? null,
      person,
    }
  }
}

function createRenderer({ secret, signedOut, now }: SessionsDependencies) {
  /** When a session begins: after all that have ended, some of them perhaps in this very second. */
  const beginning = () => Math.max(Math.floor(now().getTime() / 1000), signedOut.endedUpTo() + 1)

  return {
    beginning,
    admit: (person: CallerPerson | null, until?: number): SessionPerson | null => {
      if (person === null) return null
      const { id, name, role } = person
      const { second, count } = signedOut.endOf(id)
      const labels = reachOf(person)
      return { id, name, role, labels, from: Math.max(beginning(), second + 1), gen: count, until }
    },
    render(
      id: string,
      person: SessionPerson | null,
      generation: number | null = signedOut.countEndings(),
    ): string {
      const claims = {
        iat: beginning(),
        sid: id,
        gen: generation ?? undefined,
        who: person ?? undefined,
      }
      const body = renderClaims(claims)
      return person === null
        ? `${body}.${secret.sign(`session:${body}`)}`
        : `${PERSON}${body}.${secret.sign(`person:${body}`)}`
    },
  }
}

/**
 * Begins the session of a person: releases that know no roles do not take it for one of the
 * administrator, nor does a cache of theirs.
 */
const PERSON = 'p.'

/** Null: another server on this host name has made it, or nobody. */
function readSigned(value: string, secret: Secret): string | null {
  const isPerson = value.startsWith(PERSON)
  const [body = '', signature = '', ...rest] = value.slice(isPerson ? PERSON.length : 0).split('.')
  const purpose = isPerson ? 'person' : 'session'
  return rest.length === 0 && secret.verify(`${purpose}:${body}`, signature) ? body : null
}

const sessionsOf = (event: H3Event) => listSessions(event.req.headers.get('cookie'))

/**
 * By how often all were ended, since two ends may share a second; and by the time, since that count
 * begins anew where its file is lost. Earlier releases issued theirs without a count.
 */
const hasEnded = (signedOut: SignedOut, { sid, iat, gen, who }: z.infer<typeof Claims>): boolean =>
  signedOut.has(sid) ||
  iat <= signedOut.endedUpTo() ||
  (who !== undefined && hasEndedFor(signedOut.endOf(who.id), who)) ||
  (gen !== undefined && gen < signedOut.countEndings())

const hasEndedFor = (
  { second, count }: ReturnType<SignedOut['endOf']>,
  { from, gen }: Pick<SessionPerson, 'from' | 'gen'>,
): boolean => from <= second || gen < count

/** When a session ends, in seconds of the epoch. */
const endOfClaims = ({ iat, who }: z.infer<typeof Claims>): number =>
  Math.min(iat + SESSION_SECONDS, who?.until ?? Infinity)

/** An end that is farther away than any was when it was given tells of a clock that was wrong: nobody knows it. */
function isPast(person: Pick<SessionPerson, 'until'> | null, present: number): boolean {
  if (person?.until === undefined) return false
  const left = person.until - present
  return left <= 0 || left > PROVIDER_SECONDS + AHEAD_SECONDS
}

const renderClaims = (claims: Omit<z.infer<typeof Claims>, 'bty_authed'>): string =>
  Buffer.from(JSON.stringify({ bty_authed: true, ...claims })).toString('base64url')

const makeId = () => randomBytes(12).toString('base64url')

const endOf = (issuedAt: number) => new Date((issuedAt + SESSION_SECONDS) * 1000)

const renderSetCookie = (sessions: readonly string[], isSecure: boolean) =>
  `${renderSessions(sessions)}; Path=/; Max-Age=${SESSION_SECONDS}; ${attributes(isSecure)}`

const renderDeletion = (isSecure: boolean) =>
  `${renderSessions([])}; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; ${attributes(isSecure)}`

const attributes = (isSecure: boolean) => `HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`

const Claims = z.object({
  bty_authed: z.literal(true),
  iat: z.number(),
  sid: z.string(),
  gen: z.int().min(0).optional(),
  who: z
    .object({
      id: z.string(),
      name: z.string(),
      role: z.enum(ROLES).nullable().catch(null),
      // What cannot be read lets nobody see more.
      labels: z.array(z.string()).readonly().nullable().default(null).catch([]),
      from: z.number(),
      gen: z.int().min(0),
      until: z.number().optional(),
    })
    .optional(),
})

/** Null: it is signed by us, and yet the text of another program. */
const parseClaims = (body: string) =>
  Claims.safeParse(parseJson(Buffer.from(body, 'base64url').toString('utf8'))).data ?? null
