/** The routes of a login with an OpenID provider: there, back, and the session that comes of it. */
import type { H3Event } from 'h3'
import type { AdmissionRefusal } from '#fleet/access/provider-people.ts'
import type { Person, ProviderIdentity } from '#fleet/access/rules/person.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import type { ProviderFailure } from '#kit/net/openid/rules/provider-failure.ts'
import { addCookie, type Answer, page, seeOther } from '#kit/web/answers/answers.ts'
import { peerOf, type PlainEvent, type RecordEvents } from '#kit/web/answers/caller.ts'
import { refuse as refuseRequest } from '#kit/web/answers/faults.ts'
import { localPath } from '#kit/web/answers/checked.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Sessions } from '#kit/web/access/session.ts'
import { fill } from '#kit/foundation/text.ts'
import type { LoginFlow } from '#kit/net/openid/provider.ts'
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { deriveSecret, type Secret } from '#kit/web/access/secret.ts'
import { banner, factList, tag } from '#kit/web/ui/elements.ts'
import { html, type Content } from '#kit/web/ui/html.ts'
import type { PageLayout } from '#kit/web/ui/layout.ts'
import type { OnwardView } from '#kit/web/ui/site-views.ts'
import type { TypedForms } from '#kit/web/access/typed-forms.ts'
import { networkOf } from '#kit/web/access/rules/login-throttle.ts'

export const PROVIDER_PATH = '/ui/login/openid'
/** Where an administrator's test comes back to. */
export const PROVIDER_TEST_PATH = '/ui/people/provider/test'
/** A row beside the settings: `off` while nobody may log in with the provider that is set. */
export const PROVIDER_SWITCH = 'people.provider_login'
const HOME = '/ui/dashboard'
/** No provider sends as much. */
const MAX_SEARCH = 8192
const MAX_NEXT = 1024
/** Checked at the same time: strangers can make us ask a slow provider. */
const MAX_OF_NETWORK = 8

export interface SetProvider {
  /** Identifies its people. */
  readonly issuer: string
  readonly name: string
  /** Whom to ask for a role. */
  readonly contact: string
  /** Labels that its groups give as scopes. */
  readonly scopeLabels: readonly string[]
  begin(flow: LoginFlow, isAgain: boolean): Promise<Result<string, ProviderFailure>>
  finish(flow: LoginFlow, search: string): Promise<Result<ProviderIdentity, ProviderFailure>>
  findLogout(returnTo: string): string | null
  /** Why nobody can log in with it; null: it works. */
  failure(): ProviderFailure | null
}

interface RefusedView {
  readonly provider: string
  readonly title: string
  readonly text: string
  /** Null: something else is wrong. */
  readonly said: Pick<ProviderIdentity, 'values' | 'missing' | 'tooLong'> | null
  readonly ask: string
  readonly again: string
}

export interface ProviderViews {
  renderOnward(view: OnwardView): string
  renderRefused(view: RefusedView): string
}

interface ProviderLoginDependencies {
  /** Null: nobody may log in with one. */
  readonly provider: () => SetProvider | null
  /** The same, also while it is switched off. */
  readonly configured: () => SetProvider | null
  readonly states: LoginStates
  readonly sessions: Sessions
  readonly typed: Pick<TypedForms, 'remember'>
  /** Resolves to the person with their present role. `provider`: its name. */
  admit(
    identity: ProviderIdentity,
    provider: string,
    ip: string | null,
  ): Promise<Result<Person, AdmissionRefusal>>
  /** As they are now; null: deleted. */
  findPerson(id: string): Person | null
  readonly views: ProviderViews
  showLogin(event: H3Event, next: string, error: string, status: number): Answer
  readonly recordAll: RecordEvents
}

/** Open: nobody is logged in yet. */
export function providerLoginRoutes(parts: ProviderLoginDependencies): readonly Route[] {
  const route = (
    path: string,
    handle: (event: H3Event, provider: SetProvider) => Promise<Answer>,
    find = parts.provider,
  ) =>
    ({
      method: 'GET',
      path,
      access: 'open',
      // A HEAD of a link checker must not use up the provider's answer.
      answersHead: false,
      async handle(event: H3Event) {
        const provider = find()
        if (provider === null) throw refuseRequest(404, 'no login provider is set up')
        return await handle(event, provider)
      },
    }) as const
  return [
    route(PROVIDER_PATH, createBegin(parts)),
    route(`${PROVIDER_PATH}/callback`, createCallback(parts), parts.configured),
    route(`${PROVIDER_PATH}/finish`, createFinish(parts)),
  ]
}

export const redirectUriOf = (event: H3Event): string =>
  `${originOf(event)}${PROVIDER_PATH}/callback`

/** Pages are not below the path that a public address may have. */
export const originOf = (event: H3Event): string => new URL(peerOf(event).baseUrl).origin

function createBegin({ states, sessions, showLogin, recordAll }: ProviderLoginDependencies) {
  return async (event: H3Event, provider: SetProvider): Promise<Answer> => {
    const { searchParams: query } = event.url
    const wanted = localPath(query.get('next'), HOME)
    const next = wanted.length > MAX_NEXT || wanted.startsWith('/ui/login') ? HOME : wanted
    const isAgain = query.has('again')
    if (!isAgain && sessions.read(event) !== null) return seeOther(next)
    const { cookie, ...flow } = states.begin(event, next, peerOf(event).isSecure)
    const begun = await provider.begin({ ...flow, redirectUri: redirectUriOf(event) }, isAgain)
    if (begun.ok) return seeOther(begun.value, { 'set-cookie': cookie, ...UNKEPT })
    await recordFailure(recordAll, event, provider, begun.refusal)
    return showLogin(event, next, describeFailure(provider, begun.refusal), statusOf(begun.refusal))
  }
}

const UNKEPT = { 'cache-control': 'no-store' }

/**
 * The browser comes from another site, so Strict cookies are missing: this server's session, and
 * other servers' on this host name, which share the cookie. A page of ours sends it on.
 */
function createCallback({ views }: ProviderLoginDependencies) {
  return async ({ url }: H3Event): Promise<Answer> => {
    if (url.search.length > MAX_SEARCH)
      throw refuseRequest(400, 'the answer of the provider is too long')
    const isTest = url.searchParams.get('state')?.startsWith(TEST) === true
    const to = `${isTest ? PROVIDER_TEST_PATH : `${PROVIDER_PATH}/finish`}${url.search}`
    return page(views.renderOnward({ title: 'Logging in', to }), 200, UNKEPT)
  }
}

const CROWDED = refuse<ProviderFailure>({
  why: 'away',
  detail: 'too many logins from this network at once',
})

const PROVIDER_ERRORS = {
  unknown: 'This login has expired, or was started in another browser. Start again at {address}.',
  away: '{name} is not available: {detail}. Try again in a minute.',
  settings: 'The login with {name} is not configured correctly: {detail}. Ask an administrator.',
  denied: '{name} did not log you in: {detail}.',
  spent: 'This login with {name} has expired: {detail}. Start again.',
  doubtful: 'The answer of {name} could not be verified: {detail}. Start again.',
} as const

function createFinish(parts: ProviderLoginDependencies) {
  const { states, sessions, showLogin, recordAll } = parts
  const limit = createNetworkLimit(MAX_OF_NETWORK)
  return async (event: H3Event, provider: SetProvider): Promise<Answer> => {
    if (event.url.search.length > MAX_SEARCH)
      throw refuseRequest(400, 'the answer of the provider is too long')
    const state = states.read(event, event.url.searchParams.get('state'))
    if (state === null) {
      // Back or a reload: already logged in.
      if (sessions.read(event) !== null) return seeOther(HOME, UNKEPT)
      const login = `${originOf(event)}/ui/login`
      return showLogin(event, HOME, fill(PROVIDER_ERRORS.unknown, { address: login }), 400)
    }
    addCookie(event, states.end(event, state.state, peerOf(event).isSecure))
    const flow = { ...state, redirectUri: redirectUriOf(event) }
    const found =
      (await limit.run(peerOf(event).ip, () => provider.finish(flow, event.url.search))) ?? CROWDED
    if (found.ok) return await admit(parts, event, provider, { state, identity: found.value })
    await recordFailure(recordAll, event, provider, found.refusal)
    const error = describeFailure(provider, found.refusal)
    return showLogin(event, state.next, error, statusOf(found.refusal))
  }
}

interface ReturnedLogin {
  readonly state: LoginState
  readonly identity: ProviderIdentity
}

const REFUSED = {
  'no-role': {
    title: 'No access',
    text: '{name} identified you as {as}, but none of your groups has a role on this server.',
    event: 'no role',
  },
  blocked: {
    title: 'Blocked',
    text: '{name} identified you as {as}, but an administrator of this server has blocked you.',
    event: 'blocked',
  },
  'too-many': {
    title: 'Too many people',
    text: '{name} identified you as {as}, but this server has reached its limit of people.',
    event: 'too many people',
  },
  'scope-long': {
    title: 'Too many labels',
    text: '{name} identified you as {as}, but your groups give more labels than a session can have.',
    event: 'too many labels',
  },
  ask: 'Ask an administrator of this server, then log in again.',
  askSomebody: 'Ask {contact}, then log in again.',
} as const

async function admit(
  { sessions, typed, findPerson, views, recordAll, ...parts }: ProviderLoginDependencies,
  event: H3Event,
  provider: SetProvider,
  { state, identity }: ReturnedLogin,
): Promise<Answer> {
  const { ip, isSecure } = peerOf(event)
  const admitted = await parts.admit(identity, provider.name, ip)
  // The person as they are now: nothing happens between this look and the new session.
  const person = admitted.ok ? findPerson(admitted.value.id) : null
  if (person !== null && person.role !== null) {
    addCookie(event, typed.remember(person, isSecure))
    addCookie(event, sessions.issueForProvider(event, isSecure, person))
    const summary = `${person.name} logged in with ${provider.name}`
    const on = { subject_id: null, actor: `person:${person.name}`, ip } as const
    await recordAll([{ ...AUTH, kind: 'auth.login.succeeded', summary }], on)
    return seeOther(state.next, UNKEPT)
  }
  const why = admitted.ok ? 'no-role' : admitted.refusal
  const [name = identity.subject] = identity.names
  const summary = `${name} was not let in with ${provider.name}: ${REFUSED[why].event}`
  await recordRefusal(recordAll, event, summary)
  return page(views.renderRefused(describeRefusal(provider, identity, why)), 403, UNKEPT)
}

function describeRefusal(
  { name, contact }: SetProvider,
  identity: ProviderIdentity,
  why: AdmissionRefusal,
): RefusedView {
  const [as = identity.subject] = identity.names
  return {
    provider: name,
    title: REFUSED[why].title,
    text: fill(REFUSED[why].text, { name, as }),
    said: why === 'no-role' ? identity : null,
    ask: contact === '' ? REFUSED.ask : fill(REFUSED.askSomebody, { contact }),
    again: `${PROVIDER_PATH}?again=1`,
  }
}

const describeFailure = (
  { name }: Pick<SetProvider, 'name'>,
  { why, detail }: ProviderFailure,
): string => fill(PROVIDER_ERRORS[why], { name, detail })

const STATUS: Readonly<Record<ProviderFailure['why'], number>> = {
  away: 503,
  settings: 502,
  denied: 403,
  spent: 400,
  doubtful: 502,
}

const statusOf = ({ why }: ProviderFailure): number => STATUS[why]

const AUTH = { subject_kind: 'auth', details: null } as const

const recordFailure = (
  recordAll: RecordEvents,
  event: H3Event,
  { name }: SetProvider,
  { detail, noted = detail }: ProviderFailure,
) => recordRefusal(recordAll, event, `Failed login with ${name}: ${noted}`)

/** Anonymous: whoever failed need not be who they said. */
async function recordRefusal(recordAll: RecordEvents, event: H3Event, summary: string) {
  const on = { subject_id: null, actor: 'operator', ip: peerOf(event).ip } as const
  const failed: PlainEvent = { ...AUTH, kind: 'auth.login.failed', summary }
  await recordAll([failed], on)
}

// The cookie of the logins that are under way at a provider, one a tab: where each goes on afterwards, signed by the key of sessions.

const NAME = 'flasher-openid'
/** For the time at the provider. */
const MAX_SECONDS = 600
/** How far the clock of another server may be ahead. */
const AHEAD_SECONDS = 60
const MAX_CHARACTERS = 3072
/** A browser may hold cookies of this name for several paths. */
const MAX_COOKIES = 3
/** Between the logins of several tabs, newest first. */
const SEPARATOR = '~'
/** Only pages of the login get the cookie. */
const PATH = '/ui/login'

/** Begins the state of a test. */
const TEST = 'test-'

const Claims = z.object({ state: z.string(), next: z.string(), iat: z.number() })

interface LoginState {
  readonly state: string
  /** A local path. */
  readonly next: string
  readonly nonce: string
  /** PKCE's secret. */
  readonly verifier: string
}

type LoginStates = ReturnType<typeof createLoginStates>

/** All secrets derive from the key, so another server with it can finish a login. */
export function createLoginStates({ secret: master, now }: { secret: Secret; now(): Date }) {
  const secret = deriveSecret(master, 'logins with a provider')
  const present = () => Math.floor(now().getTime() / 1000)
  const complete = (state: string, next: string): LoginState => ({
    state,
    next,
    nonce: secret.sign(`nonce:${state}`),
    verifier: secret.sign(`verifier:${state}`),
  })

  function parse(value: string): LoginState | null {
    const [body = '', signature = '', ...rest] = value.split('.')
    if (rest.length > 0 || !secret.verify(`login:${body}`, signature)) return null
    const text = Buffer.from(body, 'base64url').toString('utf8')
    const claims = Claims.safeParse(parseJson(text)).data
    const age = claims === undefined ? Number.NaN : present() - claims.iat
    const isInTime = age >= -AHEAD_SECONDS && age < MAX_SECONDS
    return claims === undefined || !isInTime ? null : complete(claims.state, claims.next)
  }

  const listOpen = (event: H3Event) =>
    listValues(event.req.headers.get('cookie')).flatMap((value) => {
      const login = parse(value)
      return login === null ? [] : [{ value, login }]
    })

  return {
    /** `cookie` is a `Set-Cookie` value with the logins of other tabs, too. */
    begin(
      event: H3Event,
      next: string,
      isSecure: boolean,
    ): LoginState & { readonly cookie: string } {
      const state = randomBytes(18).toString('base64url')
      const text = JSON.stringify({ state, next, iat: present() })
      const body = Buffer.from(text).toString('base64url')
      const value = `${body}.${secret.sign(`login:${body}`)}`
      const others = listOpen(event).map((open) => open.value)
      return { ...complete(state, next), cookie: renderLogins([value, ...others], isSecure) }
    },
    /** By the session of who tests; no login can be finished with it. */
    beginTest(session: string): LoginState {
      const body = `${TEST}${randomBytes(18).toString('base64url')}.${present()}`
      return complete(`${body}.${secret.sign(`${session}:${body}`)}`, '')
    },
    /** Null: another session began it, or it was too long ago. */
    readTest(session: string, state: string): LoginState | null {
      const [start = '', at = '', signature = ''] = state.split('.')
      const isOurs = secret.verify(`${session}:${start}.${at}`, signature)
      return isOurs && present() - Number(at) < MAX_SECONDS ? complete(state, '') : null
    },
    /** Null: no login with that state in this browser, or too long ago. */
    read(event: H3Event, state: string | null): LoginState | null {
      return listOpen(event).find(({ login }) => login.state === state)?.login ?? null
    },
    /** A `Set-Cookie` value. A login counts once; those of other tabs stay. */
    end(event: H3Event, state: string, isSecure: boolean): string {
      const others = listOpen(event).filter(({ login }) => login.state !== state)
      return renderLogins(
        others.map(({ value }) => value),
        isSecure,
      )
    },
  }
}

/** As many as the cookie can hold. */
function renderLogins(values: readonly string[], isSecure: boolean): string {
  const size = MAX_CHARACTERS - NAME.length - 1
  const fits = (_: string, at: number) => values.slice(0, at + 1).join(SEPARATOR).length <= size
  const kept = values.filter(fits)
  return renderCookie(kept.join(SEPARATOR), kept.length === 0 ? 0 : MAX_SECONDS, isSecure)
}

const listValues = (header: string | null): readonly string[] =>
  (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`) && pair.length <= MAX_CHARACTERS)
    .slice(0, MAX_COOKIES)
    .flatMap((pair) => pair.slice(NAME.length + 1).split(SEPARATOR))

/** Not Strict: the provider sends the browser back, and a Strict cookie would not come along. */
const renderCookie = (value: string, seconds: number, isSecure: boolean): string =>
  `${NAME}=${value}; Path=${PATH}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

const MAX_SHOWN = 20

export const renderRefused = (layout: PageLayout, view: RefusedView): string =>
  layout.bare({
    title: view.title,
    body: html`<section class="stack">
      <h1>${view.title}</h1>
      ${banner('failed', view.text)}
      <p>${view.ask}</p>
      ${view.said === null ? null : factList(describeSaid(view.said, 'Your groups'))}
      <nav class="row" aria-label="Where to go">
        <a href="${view.again}">Log in as somebody else</a>
        <a href="/ui/login">Back to the login page</a>
      </nav>
    </section>`,
  })

/** For the person who is asked. */
export function describeSaid(
  { values, missing, tooLong }: NonNullable<RefusedView['said']>,
  groups: string,
): readonly (readonly [string, Content])[] {
  const more = values.length - MAX_SHOWN
  const listed = values.slice(0, MAX_SHOWN).map((value) => html`${tag(value)} `)
  return [
    [groups, values.length === 0 ? 'none' : html`${listed}${more > 0 ? `+${more}` : null}`],
    ...missing.map((claim) => ['Not sent', html`<code>${claim}</code>`] as const),
    ...tooLong.map(
      (claim) =>
        [
          'Too many groups',
          `You are in so many groups that the provider left the claim ${claim} out. Configure it to send fewer groups, or app roles.`,
        ] as const,
    ),
  ]
}

/** Limits what strangers can have the server do at the same time, by network, so that one leaves something to the others. */
function createNetworkLimit(max: number) {
  const taken = new Map<string, number>()

  return {
    /** Null: the network of `ip` is at its limit. */
    async run<T>(ip: string | null, work: () => Promise<T>): Promise<T | null> {
      const network = networkOf(ip)
      const count = taken.get(network) ?? 0
      if (count >= max) return null
      taken.set(network, count + 1)
      try {
        return await work()
      } finally {
        const left = (taken.get(network) ?? 1) - 1
        if (left === 0) taken.delete(network)
        else taken.set(network, left)
      }
    },
  }
}
