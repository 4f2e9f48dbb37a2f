/** The operator's session: a signed, self-contained cookie that slides, and expires after 7 idle days. */
import { randomBytes } from 'node:crypto'
import type { H3Event } from 'h3'
import { z } from 'zod'
import { listSessions, renderSessions } from '../../foundation/session-cookie.ts'
import { parseJson } from '../../foundation/json-reader.ts'
import type { SignedOut } from './signed-out.ts'
import type { Secret } from './secret.ts'

const LIFETIME_SECONDS = 7 * 24 * 3600
/** A session in use is issued anew when it is this old. */
const RENEW_SECONDS = 3600

interface LoginSession {
  /** The value as it stands in the cookie. */
  readonly value: string
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly isStale: boolean
  /** How often all sessions had been ended before it began; null: an earlier release issued it. */
  readonly generation: number | null
}

type Renewed = Pick<LoginSession, 'id' | 'generation'>

export type Sessions = ReturnType<typeof createSessions>

/**
 * Creates what issues, reads and ends sessions. It returns `Set-Cookie` values for the caller to
 * send.
 */
export function createSessions(parts: {
  readonly secret: Secret
  readonly signedOut: SignedOut
  readonly now: () => Date
}) {
  const { signedOut } = parts
  const seconds = () => Math.floor(parts.now().getTime() / 1000)
  /** When a session begins: after all that have ended, some of them perhaps in this very second. */
  const beginning = () => Math.max(seconds(), signedOut.endedUpTo() + 1)

  const readBody = (value: string) => readSigned(value, parts.secret)

  function read(value: string): LoginSession | null {
    const body = readBody(value)
    const claims = body === null ? null : parseClaims(body)
    if (claims === null || hasEnded(signedOut, claims)) return null
    // What we signed is good however far ahead it lies: the clock was wrong then, or is now.
    const age = seconds() - claims.iat
    if (age >= LIFETIME_SECONDS) return null
    return {
      value,
      id: claims.sid,
      expiresAt: (claims.iat + LIFETIME_SECONDS) * 1000,
      isStale: age >= RENEW_SECONDS,
      generation: claims.gen ?? null,
    }
  }

  function renderSession(
    id: string,
    issuedAt = beginning(),
    generation: number | null = signedOut.countEndings(),
  ): string {
    const body = renderClaims({ iat: issuedAt, sid: id, gen: generation ?? undefined })
    return `${body}.${parts.secret.sign(`session:${body}`)}`
  }

  /** Those of other servers stay in the cookie, unread. */
  const listOthers = (event: H3Event) =>
    sessionsOf(event).filter((value) => readBody(value) === null)

  const add = (event: H3Event, session: string, isSecure: boolean) =>
    renderSetCookie([session, ...listOthers(event)], isSecure)

  const issue = (event: H3Event, isSecure: boolean) => add(event, renderSession(makeId()), isSecure)

  return {
    /** Begins one. A `Set-Cookie` value. */
    issue,
    /** One that was read goes on. A `Set-Cookie` value. */
    renew: (event: H3Event, isSecure: boolean, { id, generation }: Renewed) =>
      add(event, renderSession(id, beginning(), generation), isSecure),
    /** Ends every session there is. A `Set-Cookie` value, for the one browser that stays logged in. */
    async endOthers(event: H3Event, isSecure: boolean): Promise<string> {
      await signedOut.addAll(beginning())
      return issue(event, isSecure)
    },
    /** `name=value`, as a browser sends it that is logged in nowhere else. */
    renderCookie: (id: string) => renderSessions([renderSession(id)]),
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

/** Null: another server on this host name has made it, or nobody. */
function readSigned(value: string, secret: Secret): string | null {
  const [body = '', signature = '', ...rest] = value.split('.')
  return rest.length === 0 && secret.verify(`session:${body}`, signature) ? body : null
}

const sessionsOf = (event: H3Event) => listSessions(event.req.headers.get('cookie'))

/**
 * By how often all were ended, since two ends may share a second; and by the time, since that count
 * begins anew where its file is lost. Earlier releases issued theirs without a count.
 */
const hasEnded = (signedOut: SignedOut, { sid, iat, gen }: z.infer<typeof Claims>): boolean =>
  signedOut.has(sid) ||
  iat <= signedOut.endedUpTo() ||
  (gen !== undefined && gen < signedOut.countEndings())

const renderClaims = (claims: Omit<z.infer<typeof Claims>, 'bty_authed'>): string =>
  Buffer.from(JSON.stringify({ bty_authed: true, ...claims })).toString('base64url')

const makeId = () => randomBytes(12).toString('base64url')

const endOf = (issuedAt: number) => new Date((issuedAt + LIFETIME_SECONDS) * 1000)

const renderSetCookie = (sessions: readonly string[], isSecure: boolean) =>
  `${renderSessions(sessions)}; Path=/; Max-Age=${LIFETIME_SECONDS}; ${attributes(isSecure)}`

const renderDeletion = (isSecure: boolean) =>
  `${renderSessions([])}; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; ${attributes(isSecure)}`

const attributes = (isSecure: boolean) => `HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`

const Claims = z.object({
  bty_authed: z.literal(true),
  iat: z.number(),
  sid: z.string(),
  gen: z.int().min(0).optional(),
})

/** Null: it is signed by us, and yet the text of another program. */
const parseClaims = (body: string) =>
  Claims.safeParse(parseJson(Buffer.from(body, 'base64url').toString('utf8'))).data ?? null
