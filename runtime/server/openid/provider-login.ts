/** The routes of a login with an OpenID provider: there, back, and the session that comes of it. */
import type { H3Event } from 'h3'
import type { AdmissionRefusal } from '#fleet/access/provider-people.ts'
import type { Person } from '#fleet/access/rules/person.ts'
import type { ProviderIdentity } from '#fleet/access/rules/provider-identity.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import type { ProviderFailure } from '#kit/net/openid/rules/provider-failure.ts'
import { page, seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import { refuse as refuseRequest } from '#kit/web/answers/faults.ts'
import { localPath } from '#kit/web/answers/local-path.ts'
import type { PlainEvent, RecordEvents } from '#kit/web/answers/plain-event.ts'
import { addCookie } from '#kit/web/answers/set-cookie.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Sessions } from '#kit/web/access/session.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { LoginFlow } from '#kit/net/openid/provider.ts'
import type { LoginState, LoginStates } from './login-state.ts'
import { createNetworkLimit } from './network-limit.ts'

const t = PAGES.provider

export const PROVIDER_PATH = '/ui/login/openid'
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
  /** Null: it has no logout. */
  findLogout(returnTo: string): string | null
  /** Why nobody can log in with it; null: it works. */
  failure(): ProviderFailure | null
}

export interface RefusedView {
  readonly provider: string
  readonly title: string
  readonly text: string
  /** Null: something else is wrong. */
  readonly said: Pick<ProviderIdentity, 'values' | 'missing' | 'tooLong'> | null
  readonly ask: string
  readonly again: string
}

export interface OnwardView {
  readonly title: string
  readonly to: string
}

export interface ProviderViews {
  renderOnward(view: OnwardView): string
  renderRefused(view: RefusedView): string
}

interface ProviderLoginDependencies {
  provider(): SetProvider | null
  readonly states: LoginStates
  readonly sessions: Sessions
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
  ) =>
    ({
      method: 'GET',
      path,
      access: 'open',
      // A HEAD of a link checker must not use up the provider's answer.
      answersHead: false,
      async handle(event: H3Event) {
        const provider = parts.provider()
        if (provider === null) throw refuseRequest(404, t.none)
        return await handle(event, provider)
      },
    }) as const
  return [
    route(PROVIDER_PATH, createBegin(parts)),
    route(`${PROVIDER_PATH}/callback`, createCallback(parts)),
    route(`${PROVIDER_PATH}/finish`, createFinish(parts)),
  ]
}

const redirectUriOf = (event: H3Event): string => `${originOf(event)}${PROVIDER_PATH}/callback`

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
  return async ({ url }: H3Event, { name }: SetProvider): Promise<Answer> => {
    if (url.search.length > MAX_SEARCH) throw refuseRequest(400, t.tooLong)
    const to = `${PROVIDER_PATH}/finish${url.search}`
    return page(views.renderOnward({ title: fill(t.onward, { name }), to }), 200, UNKEPT)
  }
}

const CROWDED = refuse<ProviderFailure>({
  why: 'away',
  detail: 'too many of this network log in at once',
})

function createFinish(parts: ProviderLoginDependencies) {
  const { states, sessions, showLogin, recordAll } = parts
  const limit = createNetworkLimit(MAX_OF_NETWORK)
  return async (event: H3Event, provider: SetProvider): Promise<Answer> => {
    if (event.url.search.length > MAX_SEARCH) throw refuseRequest(400, t.tooLong)
    const state = states.read(event, event.url.searchParams.get('state'))
    if (state === null) {
      // Back or a reload: already logged in.
      if (sessions.read(event) !== null) return seeOther(HOME, UNKEPT)
      const login = `${originOf(event)}/ui/login`
      return showLogin(event, HOME, fill(t.errors.unknown, { address: login }), 400)
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

async function admit(
  { sessions, findPerson, views, recordAll, ...parts }: ProviderLoginDependencies,
  event: H3Event,
  provider: SetProvider,
  { state, identity }: ReturnedLogin,
): Promise<Answer> {
  const { ip, isSecure } = peerOf(event)
  const admitted = await parts.admit(identity, provider.name, ip)
  // The person as they are now: nothing happens between this look and the new session.
  const person = admitted.ok ? findPerson(admitted.value.id) : null
  if (person !== null && person.role !== null) {
    addCookie(event, sessions.issueForProvider(event, isSecure, person))
    const summary = `${person.name} logged in with ${provider.name}`
    const on = { subject_id: null, actor: `person:${person.name}`, ip } as const
    await recordAll([{ ...AUTH, kind: 'auth.login.succeeded', summary }], on)
    return seeOther(state.next, UNKEPT)
  }
  const why = admitted.ok ? 'no-role' : admitted.refusal
  const [name = identity.subject] = identity.names
  const summary = `${name} was not let in with ${provider.name}: ${t.refused[why].event}`
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
    title: t.refused[why].title,
    text: fill(t.refused[why].text, { name, as }),
    said: why === 'no-role' ? identity : null,
    ask: contact === '' ? t.refused.ask : fill(t.refused.askSomebody, { contact }),
    again: `${PROVIDER_PATH}?again=1`,
  }
}

const describeFailure = (
  { name }: Pick<SetProvider, 'name'>,
  { why, detail }: ProviderFailure,
): string => fill(t.errors[why], { name, detail })

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
