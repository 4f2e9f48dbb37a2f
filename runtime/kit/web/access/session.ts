/** A session: a signed, self-contained cookie that slides, expires after 7 idle days, and ends when its user logs out. */
import { randomBytes } from 'node:crypto'
import type { H3Event } from 'h3'
import { z } from 'zod'
import { listSessions, renderSessions, SESSION_SECONDS } from '#kit/foundation/session-cookie.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { CallerPerson } from '../answers/caller.ts'
import { reachOf, ROLES } from '../answers/rules/rights.ts'
import { identify, type Secret } from './secret.ts'
import { readFileSync, statSync } from 'node:fs'
import { replaceFile } from '#kit/host/folders.ts'
import { inTurnOf } from '#kit/host/queue.ts'

/** A session in use is issued anew when it is this old. */
const RENEW_SECONDS = 3600
/** How long a session of a provider's person lasts after the provider's last word, in seconds. */
const PROVIDER_SECONDS = 12 * 3600
/** How far ahead of ours the clock of the server may have been that issued a session, in seconds. */
const AHEAD_SECONDS = 300

interface LoginSession {
  readonly value: string
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  readonly isStale: boolean
  /** What it names that its owner's row must have. */
  readonly mark: string
  /** Whose it is; null: the administrator's. */
  readonly person: CallerPerson | null
  /** When it ends however it is used, in seconds of the epoch; absent: it does not. */
  readonly until?: number | undefined
}

export type SessionClaims = z.infer<typeof Claims>

/** Whose sessions hold: what ends them is part of the row of their owner. `owner` null: the administrator. */
export interface SessionBook {
  /** What sessions name that begin now; another one ends all sessions of before. */
  markOf(owner: string | null): string
  /** Returns whose session it is, as they are now (null: the administrator); undefined: it holds no more. */
  admit(session: SessionClaims): CallerPerson | null | undefined
  /** Ends one session. `until`: when it would end by itself, in seconds of the epoch. Rejects where it cannot be stored. */
  end(owner: string | null, session: string, until: number): Promise<void>
}

type Renewed = Pick<LoginSession, 'id' | 'mark' | 'person' | 'until'>

export type Sessions = ReturnType<typeof createSessions>

interface SessionsDependencies {
  readonly secret: Secret
  readonly book: SessionBook
  readonly now: () => Date
  /** Whether sessions without a name count; absent: they do. A cache with the same key opens them, too. */
  allowsNameless?(): boolean
  /**
   * Whether sessions of people go on as they are used; absent: they do. Not where nobody may learn that
   * a role was taken away: they end there as the server that opened them last said.
   */
  readonly renewsPeople?: boolean
}

/** It returns `Set-Cookie` values for the caller to send. */
export function createSessions(parts: SessionsDependencies) {
  const { book, secret } = parts
  const read = createReader(parts)
  const present = () => Math.floor(parts.now().getTime() / 1000)

  /** Those of other servers stay in the cookie, unread. */
  const listOthers = (event: H3Event) =>
    sessionsOf(event).filter((value) => readSigned(value, secret) === null)

  function render({ id, mark, person, until }: Renewed): string {
    const body = renderClaims({ iat: present(), sid: id, mark, until, who: describe(person) })
    return person === null
      ? `${body}.${secret.sign(`session:${body}`)}`
      : `${PERSON}${body}.${secret.sign(`person:${body}`)}`
  }

  const add = (event: H3Event, isSecure: boolean, session: Renewed) =>
    renderSetCookie([render(session), ...listOthers(event)], isSecure)

  const begin = (person: CallerPerson | null, until?: number): Renewed => ({
    id: randomBytes(12).toString('base64url'),
    mark: book.markOf(person?.id ?? null),
    person,
    until,
  })

  return {
    /** A `Set-Cookie` value; `person` null: of the administrator. */
    issue: (event: H3Event, isSecure: boolean, person: CallerPerson | null = null) =>
      add(event, isSecure, begin(person)),
    /** It ends 12 hours later. A `Set-Cookie` value. */
    issueForProvider: (event: H3Event, isSecure: boolean, person: CallerPerson) =>
      add(event, isSecure, begin(person, present() + PROVIDER_SECONDS)),
    /** A `Set-Cookie` value. */
    renew: add,
    /** `name=value`, as a browser sends it that is logged in nowhere else. */
    renderCookie: (id: string, person: CallerPerson | null) =>
      renderSessions([render({ ...begin(person), id })]),
    /** Null for anything but a session of ours that still holds. */
    read(event: H3Event): LoginSession | null {
      for (const value of sessionsOf(event)) {
        const session = read(value)
        if (session !== null) return session
      }
      return null
    },
    /** Ends it for every copy of its cookie, of which the newest may be of this moment. */
    revoke: ({ id, person }: Pick<LoginSession, 'id' | 'person'>) =>
      book.end(person?.id ?? null, id, present() + SESSION_SECONDS),
    holds: ({ value }: Pick<LoginSession, 'value'>) => read(value) !== null,
    /** The `Set-Cookie` value that takes ours away, and deletes the cookie where none is left. */
    clear(event: H3Event, isSecure: boolean): string {
      const others = listOthers(event)
      return others.length > 0 ? renderSetCookie(others, isSecure) : renderDeletion(isSecure)
    },
  }
}

/** What a cache says of a person that has no row of them. */
const describe = (person: CallerPerson | null): SessionClaims['who'] =>
  person === null
    ? undefined
    : { id: person.id, name: person.name, role: person.role, labels: reachOf(person) }

function createReader(parts: SessionsDependencies) {
  const { secret, book, now, allowsNameless, renewsPeople = true } = parts
  const admit = (claims: SessionClaims) => {
    const person = book.admit(claims)
    return person === null && allowsNameless?.() === false ? undefined : person
  }

  return (value: string): LoginSession | null => {
    const body = readSigned(value, secret)
    const claims = body === null ? null : parseClaims(body)
    if (claims === null) return null
    const person = admit(claims)
    if (person === undefined) return null
    // What we signed is good however far ahead it lies: the clock was wrong then, or is now.
    const present = Math.floor(now().getTime() / 1000)
    const age = present - claims.iat
    const { sid: id, mark, until } = claims
    if (age >= SESSION_SECONDS || isPast(until, present)) return null
    return {
      value,
      id,
      expiresAt: Math.min(claims.iat + SESSION_SECONDS, until ?? Infinity) * 1000,
      isStale: age >= RENEW_SECONDS && (renewsPeople || person === null),
      mark,
      person,
      until,
    }
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

/** An end that is farther away than any was when it was given tells of a clock that was wrong: nobody knows it. */
function isPast(until: number | undefined, present: number): boolean {
  if (until === undefined) return false
  const left = until - present
  return left <= 0 || left > PROVIDER_SECONDS + AHEAD_SECONDS
}

const renderClaims = (claims: Omit<SessionClaims, 'bty_authed'>): string =>
  Buffer.from(JSON.stringify({ bty_authed: true, ...claims })).toString('base64url')

const renderSetCookie = (sessions: readonly string[], isSecure: boolean) =>
  `${renderSessions(sessions)}; Path=/; Max-Age=${SESSION_SECONDS}; ${attributes(isSecure)}`

const renderDeletion = (isSecure: boolean) =>
  `${renderSessions([])}; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; ${attributes(isSecure)}`

const attributes = (isSecure: boolean) => `HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`

/** A session without a mark is none. */
const Claims = z.object({
  bty_authed: z.literal(true),
  iat: z.number(),
  sid: z.string(),
  mark: z.string(),
  until: z.number().optional(),
  who: z
    .object({
      id: z.string(),
      name: z.string(),
      role: z.enum(ROLES).nullable().catch(null),
      // What cannot be read lets nobody see more.
      labels: z.array(z.string()).readonly().nullable().default(null).catch([]),
    })
    .optional(),
})

/** Null: it is signed by us, and yet the text of another program. */
const parseClaims = (body: string) =>
  Claims.safeParse(parseJson(Buffer.from(body, 'base64url').toString('utf8'))).data ?? null

interface SignedOutOptions {
  /** `<state_dir>/signed-out.json`. */
  readonly path: string
  now(): Date
}

/** So many stay whatever the clock says: it may be wrong, and a session must not come back. */
const KEPT = 1000
/** Begins the entry of all sessions that were issued up to a second: the list of that moment was damaged. */
const LOST = '!:'

/**
 * Follows the list. A server and a cache with one state directory share it: the server, which keeps the
 * ends of its sessions itself, takes up what the cache wrote, at the next question. A look at the file's
 * times is microseconds; the signature costs more.
 */
export function createSignedOut({ path, now }: SignedOutOptions) {
  /** When each would end by itself, in seconds of the epoch. */
  const ends = new Map<string, number>()
  /** Whatever was issued up to this second has ended. */
  let last = -Infinity
  let seen: string | null = null

  function takeUp() {
    const present = identify(path)
    if (present === seen) return
    seen = present
    for (const [id, end] of present === null ? [] : readEnds(path)) {
      ends.set(id, end)
      if (id.startsWith(LOST)) last = Math.max(last, end)
    }
  }

  async function write() {
    takeUp()
    const at = now().getTime() / 1000
    for (const [id, end] of ends) if (ends.size > KEPT && end <= at) ends.delete(id)
    await replaceFile(path, `${JSON.stringify(Object.fromEntries(ends))}\n`, 0o600)
  }

  return {
    has({ sid, iat }: Pick<SessionClaims, 'sid' | 'iat'>): boolean {
      takeUp()
      return ends.has(sid) || iat <= last
    },
    /** Counts at once; on disk when it resolves. `until`: when the session would end by itself. */
    async add(id: string, until: number): Promise<void> {
      ends.set(id, until)
      await inTurnOf(path, write)
    },
  }
}

/** Of a damaged list nobody knows which sessions were in it: all have ended that are as old. */
function readEnds(path: string): readonly (readonly [string, number])[] {
  const second = Math.floor((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1000)
  const lost = [[`${LOST}${second}`, second]] as const
  try {
    const found = z.record(z.string(), z.number()).safeParse(parseJson(readFileSync(path, 'utf8')))
    return found.success ? Object.entries(found.data) : lost
  } catch {
    return lost
  }
}
