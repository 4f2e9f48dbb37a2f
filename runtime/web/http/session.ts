/** The operator's session: a signed, self-contained cookie that slides, and expires after 7 idle days. */
import { randomBytes } from 'node:crypto'
import type { H3Event } from 'h3'
import { z } from 'zod'
import { parseJson } from '../../core/foundation/json-reader.ts'
import type { SignedOut } from '../../services/access/signed-out.ts'
import type { Secret } from '../../services/access/secret.ts'

const COOKIE = 'flasher-token'

const LIFETIME_SECONDS = 7 * 24 * 3600
/** A session in use is issued anew when it is this old. */
const RENEW_SECONDS = 3600
/** Clocks may differ by this after a restart; a cookie from further ahead is not ours. */
const SKEW_SECONDS = 300
/** Far longer than any of ours. */
const MAX_CHARACTERS = 512

interface Session {
  readonly id: string
  /** Seconds since the epoch. */
  readonly issuedAt: number
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly isStale: boolean
}

export type Sessions = ReturnType<typeof createSessions>

export function createSessions(parts: {
  readonly secret: Secret
  readonly signedOut: SignedOut
  readonly now: () => Date
}) {
  const { signedOut } = parts
  const seconds = () => Math.floor(parts.now().getTime() / 1000)
  /** When a session begins: after all that have ended, some of them perhaps in this very second. */
  const beginning = () => Math.max(seconds(), signedOut.endedUpTo() + 1)

  function read(value: string): Session | null {
    const [body = '', signature = '', ...rest] = value.split('.')
    if (rest.length > 0 || !parts.secret.verify(`session:${body}`, signature)) return null
    const claims = parseClaims(body)
    if (claims === null || hasEnded(claims.sid, claims.iat)) return null
    const age = seconds() - claims.iat
    if (age < -SKEW_SECONDS || age >= LIFETIME_SECONDS) return null
    return {
      id: claims.sid,
      issuedAt: claims.iat,
      expiresAt: (claims.iat + LIFETIME_SECONDS) * 1000,
      isStale: age >= RENEW_SECONDS,
    }
  }

  const hasEnded = (id: string, issuedAt: number) =>
    signedOut.has(id) || issuedAt <= signedOut.endedUpTo()

  /** `name=value`, as a browser sends it. */
  function renderCookie(id: string, issuedAt = beginning()): string {
    const claims = JSON.stringify({ bty_authed: true, iat: issuedAt, sid: id })
    const body = Buffer.from(claims).toString('base64url')
    return `${COOKIE}=${body}.${parts.secret.sign(`session:${body}`)}`
  }

  const issue = (isSecure: boolean) => renderSetCookie(renderCookie(makeId()), isSecure)

  return {
    /** Begins one. A `Set-Cookie` value. */
    issue,
    /** One that was read goes on. A `Set-Cookie` value. */
    renew: (isSecure: boolean, id: string) =>
      renderSetCookie(renderCookie(id, seconds()), isSecure),
    /** Ends every session there is. A `Set-Cookie` value, for the one browser that stays logged in. */
    async endOthers(isSecure: boolean): Promise<string> {
      const last = beginning()
      await signedOut.addAll(last, endOf(last))
      return issue(isSecure)
    },
    renderCookie,
    /** Null for anything but a cookie of ours that still holds. */
    read(event: H3Event): Session | null {
      for (const value of cookiesNamed(event.req.headers.get('cookie'))) {
        const session = value.length > MAX_CHARACTERS ? null : read(value)
        if (session !== null) return session
      }
      return null
    },
    /** Ends it for every copy of its cookie, of which the newest may be of this moment. */
    revoke: (id: string) => signedOut.add(id, endOf(beginning())),
    isRevoked: ({ id, expiresAt }: Pick<Session, 'id' | 'expiresAt'>) =>
      hasEnded(id, expiresAt / 1000 - LIFETIME_SECONDS),
    /** The `Set-Cookie` value that deletes it. */
    clear: (isSecure: boolean) =>
      `${COOKIE}=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; ${attributes(isSecure)}`,
  }
}

const makeId = () => randomBytes(12).toString('base64url')

const endOf = (issuedAt: number) => new Date((issuedAt + LIFETIME_SECONDS) * 1000)

const renderSetCookie = (cookie: string, isSecure: boolean) =>
  `${cookie}; Path=/; Max-Age=${LIFETIME_SECONDS}; ${attributes(isSecure)}`

const attributes = (isSecure: boolean) => `HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`

/** Not h3's `getCookie`: a browser may hold two of that name, and a few are looked at. */
function cookiesNamed(header: string | null): readonly string[] {
  if (header === null) return []
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .slice(0, 3)
    .map((pair) => pair.slice(COOKIE.length + 1))
}

const Claims = z.object({ bty_authed: z.literal(true), iat: z.number(), sid: z.string() })

/** Null: it is signed by us, and yet the text of another program. */
const parseClaims = (body: string) =>
  Claims.safeParse(parseJson(Buffer.from(body, 'base64url').toString('utf8'))).data ?? null
