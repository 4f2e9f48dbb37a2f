/** Checks who may pass: session or token, the right scope, and no form from another site. */
import type { H3Event } from 'h3'
import { readBearer } from '../answers/checked.ts'
import { refuse } from '../answers/faults.ts'
import {
  boundsOf,
  type By,
  type Caller,
  type CallerPerson,
  type Peer,
  type PlainEvent,
  type RecordEvents,
} from '../answers/caller.ts'
import {
  isSameReach,
  passesReach,
  reachOf,
  type Reach,
  type RouteReach,
  decideGate,
  type PageScope,
  type Rights,
  type Scope,
} from '../answers/rules/rights.ts'
import type { Sessions } from './session.ts'
import type { Attempts } from './password-check.ts'

export type Guard = ReturnType<typeof createGuard>

/** What it refuses is thrown as 401, 403 or 429. */
export function createGuard(parts: {
  readonly sessions: Pick<Sessions, 'read' | 'renew' | 'holds'>
  readonly tokens: TokenCheck
}) {
  const { sessions, tokens } = parts
  /** What a caller showed, for as long as its answer lasts. */
  const shown = new WeakMap<Caller, string>()

  /** For pages, which take no token: who is logged in, or nobody. */
  function identifyOperator(event: H3Event, peer: Peer): Caller {
    const session = sessions.read(event)
    if (session === null) return { kind: 'anonymous' }
    if (session.isStale) {
      event.res.headers.append('set-cookie', sessions.renew(event, peer.isSecure, session))
    }
    const { id, expiresAt, person } = session
    const caller: Caller = { kind: 'session', id, expiresAt, person }
    shown.set(caller, session.value)
    return caller
  }

  return {
    identifyOperator,
    /**
     * Who asks; a session that is an hour old is issued anew with the answer. Throws a 429 for a wrong
     * token of an address that guesses.
     */
    identify(event: H3Event, peer: Peer): Caller {
      const operator = identifyOperator(event, peer)
      if (operator.kind === 'session') return operator
      const bearer = readBearer(event)
      const token = bearer === null ? null : tokens.check(bearer, peer)
      if (bearer === null || token === null) return operator
      const { name, scopes, person = null } = token
      const caller: Caller = { kind: 'token', name, scopes, person }
      shown.set(caller, bearer)
      return caller
    },
    /** For methods that change something: throws a 403 when the request comes from elsewhere, as the browser says. */
    checkOrigin(event: H3Event, peer: Peer): void {
      const why = findForeign(event, peer)
      if (why !== null) throw refuse(403, why)
    },
    checkScope(caller: Caller, scope: PageScope): void {
      const refusal = decideGate(readRights(caller), scope)
      if (refusal === null) return
      if (refusal.why === 'login') throw refuse(401, 'login required')
      throw refuse(403, refusal.detail, refusal.hint === null ? {} : { hint: refusal.hint })
    },
    /** Throws a 403 for a caller with a scope of labels where a route is about all machines. */
    checkReach(caller: Caller, reach: RouteReach): void {
      if (passesReach(boundsOf(caller)?.reach ?? null, reach)) return
      throw refuse(403, WHOLE, { hint: ASK_WITHOUT_SCOPE })
    },
    permits: (caller: Caller, scope: PageScope, reach: RouteReach): boolean =>
      decideGate(readRights(caller), scope) === null &&
      passesReach(boundsOf(caller)?.reach ?? null, reach),
    /** False once a session or token is void, or permits less or other machines: long answers ask now and then. */
    isStillValid(caller: Caller): boolean {
      const value = shown.get(caller) ?? ''
      // Read anew, since its key can have been replaced as well.
      return caller.kind === 'session'
        ? sessions.holds({ value })
        : caller.kind === 'token' && isSameToken(caller, tokens.find(value))
    },
  }
}

const WHOLE = 'this is about all machines, but you see only some of them'
const ASK_WITHOUT_SCOPE = 'Ask an administrator of this server.'

/** An answer that goes on shows what its owner may see now: the role decides that as well as the labels. */
const isSameToken = (
  { person, scopes }: Extract<Caller, { readonly kind: 'token' }>,
  found: KnownToken | null,
): boolean =>
  found !== null &&
  scopes.every((scope) => found.scopes.includes(scope)) &&
  isSameReach(reachOfOwner(person), reachOfOwner(found.person ?? null))

const reachOfOwner = (person: CallerPerson | null): Reach =>
  person === null ? null : reachOf(person)

function readRights(caller: Caller): Rights {
  if (caller.kind === 'anonymous') return { kind: 'nobody' }
  if (caller.kind === 'token') return { kind: 'token', scopes: caller.scopes }
  return caller.person === null ? { kind: 'administrator' } : { kind: 'person', ...caller.person }
}

export function renderBy(caller: Caller, ip: string | null): By {
  if (caller.kind === 'anonymous') return { actor: 'pxe-client', ip }
  const { person } = caller
  if (caller.kind === 'session') {
    return { actor: person === null ? 'operator' : `person:${person.name}`, ip }
  }
  const { name } = caller
  return { actor: person === null ? `token:${name}` : `token:${name}@${person.name}`, ip }
}

/** Why a request is not ours; null: it is. Scripts say neither `Sec-Fetch-Site` nor `Origin`, browsers say both. */
function findForeign(event: H3Event, peer: Peer): string | null {
  const site = event.req.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') return OTHER_SITE
  const origin = event.req.headers.get('origin')
  if (origin === null || isHidden(origin, site)) return null
  const url = URL.parse(origin)
  if (url === null || url.origin === 'null') return OTHER_SITE
  if (peer.ownHosts.some((own) => isSame(url, own))) return null
  const what = `the page is at ${url.host}, and this server was asked for ${peer.host}`
  return `${site === null ? `${OTHER_SITE}, or ` : ''}${NO_HOST}: ${what} (nginx: proxy_set_header Host $http_host)`
}

/** Privacy extensions, and the `Referrer-Policy` of a proxy, hide the origin of our own forms as well. */
const isHidden = (origin: string, site: string | null) =>
  origin === 'null' && site === 'same-origin'

const OTHER_SITE = 'this request comes from another site'
/** A plain `proxy_pass` of nginx sends the name of the server behind it. */
const NO_HOST = 'a proxy in front of this server does not pass on the Host header'

/** Ports that a scheme implies are left out by browsers, and perhaps by proxies. */
const isSame = (origin: URL, own: string): boolean =>
  withoutDot(URL.parse(`${origin.protocol}//${own}`)?.host) === withoutDot(origin.host)

/** A name with the dot of the root is the same name. */
const withoutDot = (host = '') => host.replace(/\.(?=:|$)/, '')

// Checks bearer tokens; wrong ones are recorded, and slow down further attempts.

/** What a token permits; a person's own rights limit it already. */
export interface KnownToken {
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Whose it is; null or absent: the administrator's. */
  readonly person?: CallerPerson | null
}

interface TokenSource {
  /** No guess finds a token that a program made, so that these are looked up at any time. */
  find(text: string): KnownToken | null
  /**
   * Finds a secret that a person chose. It is called only for addresses that have not just guessed
   * wrong: hashing is slow.
   */
  findChosen?(text: string): KnownToken | null
}

type TokenCheck = ReturnType<typeof createTokenCheck>

interface TokenCheckDependencies {
  readonly tokens: TokenSource
  readonly attempts: Attempts
  readonly recordAll: RecordEvents
}

/** Tokens that programs made are never slowed down. */
export function createTokenCheck({ tokens, attempts, recordAll }: TokenCheckDependencies) {
  const findChosen = (bearer: string) => tokens.findChosen?.(bearer) ?? null

  return {
    /** Null for a wrong one; throws a 429 while its address has to wait. */
    check(bearer: string, { ip }: Peer): KnownToken | null {
      const made = tokens.find(bearer)
      if (made !== null) return made
      const wait = attempts.waitOf(ip)
      if (wait > 0) {
        const detail = `too many wrong tokens from this address: try again in ${wait} s`
        throw refuse(429, detail, { headers: { 'retry-after': String(wait) } })
      }
      const chosen = findChosen(bearer)
      if (chosen !== null) {
        attempts.forgive(ip)
        return chosen
      }
      // Nobody's answer waits for the record.
      if (attempts.count(ip)) void recordAll([WRONG], { subject_id: null, actor: 'operator', ip })
      return null
    },
    find: (bearer: string): KnownToken | null => tokens.find(bearer) ?? findChosen(bearer),
  }
}

const WRONG: PlainEvent = {
  kind: 'auth.token.failed',
  subject_kind: 'auth',
  summary: 'Wrong token',
  details: null,
}
