/** The matrix of rights: every route that there is, asked by everybody, with canaries outside of the scope. */
import * as assert from 'uvu/assert'
import type { Route } from '../../../runtime/kit/web/answers/route.ts'
import {
  permits,
  ROLES,
  SCOPES,
  scopesOf,
  type Role,
  type Scope,
} from '../../../runtime/kit/web/answers/rules/rights.ts'
import { addPerson, createCurrentServer, type CurrentServer } from './current-server.ts'
import { asMac, CANARY, hideCanaries, NOWHERE, OUTSIDE, UNLABELLED } from './canaries.ts'
import type { PageScope } from '../../../runtime/kit/web/answers/rules/rights.ts'
import { findExpected } from './expected-routes.ts'
import { runIdOf } from '../server/runs.ts'
import { asJson } from '../server/server.ts'

type Ask = (path: string, init?: RequestInit) => Promise<Response>

interface Asker {
  readonly name: string
  /** What they may do; null: they are nobody. */
  readonly scopes: readonly Scope[] | null
  readonly isToken: boolean
  /** Whether they see some of the machines alone. */
  readonly isScoped: boolean
  readonly ask: Ask
}

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`

/** The scope of people with one: none of the canaries has that label. */
const LAB = ['lab']

async function openAskers(server: CurrentServer): Promise<readonly Asker[]> {
  const { peopleStore, tokens } = server.state
  const bearer =
    (token: string): Ask =>
    (path, init = {}) => {
      const headers = new Headers(init.headers)
      headers.set('authorization', `Bearer ${token}`)
      return server.request(path, { ...init, headers })
    }
  const makeToken = async (name: string, scopes: readonly Scope[], owner: string | null) => {
    const made = await tokens.create({ name, scopes, expires_at: null, owner }, 100)
    assert.ok(made.ok)
    return bearer(made.value.token)
  }
  const ofPeople = async (role: Role, labels: readonly string[]): Promise<readonly Asker[]> => {
    const name = `${role}-${labels.join('-') || 'all'}`
    const ask = await addPerson(server, name, role, labels)
    const owner = peopleStore.findByName(name)?.id ?? null
    const common = { scopes: scopesOf(role), isScoped: labels.length > 0 }
    return [
      { ...common, name, isToken: false, ask },
      { ...common, name: `${name}'s`, isToken: true, ask: await makeToken(name, SCOPES, owner) },
    ]
  }
  const people: Asker[] = []
  for (const role of ROLES) people.push(...(await ofPeople(role, [])))
  for (const role of ['look', 'operate'] as const) people.push(...(await ofPeople(role, LAB)))
  const plain: Asker[] = []
  for (const scope of SCOPES) {
    const ask = await makeToken(`only ${scope}`, [scope], null)
    plain.push({ name: `token ${scope}`, scopes: [scope], isToken: true, isScoped: false, ask })
  }
  const none = { scopes: null, isScoped: false } as const
  return [
    { ...none, name: 'nobody', isToken: false, ask: server.request },
    { ...none, name: 'a wrong token', isToken: true, ask: bearer('flasher_nothing') },
    ...people,
    ...plain,
  ]
}

type Verdict = 'open' | 'login' | 'forbidden' | 'admitted'

/** People see their own tokens; a program sees none of them. */
const needOfToken = (route: Route, need: PageScope): PageScope =>
  nameOf(route) === 'GET /tokens' ? 'admin' : need

function expect(route: Route, { scopes, isToken, isScoped }: Asker): Verdict {
  const expected = findExpected(route)
  assert.ok(expected !== null, nameOf(route))
  const { need, reach } = expected
  if (need === 'open') return 'open'
  // Pages take no token: whoever shows one is nobody there.
  if (scopes === null || (isToken && route.access === 'page')) return 'login'
  const wanted = isToken ? needOfToken(route, need) : need
  if (wanted !== 'own' && !permits(scopes, wanted)) return 'forbidden'
  return isScoped && reach === 'whole' ? 'forbidden' : 'admitted'
}

function read(answer: Response): Exclude<Verdict, 'open'> {
  const to = answer.headers.get('location') ?? ''
  const isLogin = answer.status === 303 && to.startsWith('/ui/login')
  if (isLogin || answer.status === 401 || answer.status === 429) return 'login'
  return answer.status === 403 ? 'forbidden' : 'admitted'
}

async function readSome(answer: Response): Promise<string> {
  const type = answer.headers.get('content-type') ?? ''
  if (!type.startsWith('text/event-stream')) return await answer.text()
  const reader = answer.body?.getReader()
  const chunk = await reader?.read()
  await reader?.cancel()
  return new TextDecoder().decode(chunk?.value ?? new Uint8Array())
}

/** All that nobody here may change: the machines outside, and what is of the server alone. */
async function snapshot({ state }: CurrentServer): Promise<string> {
  const { machines, runs, peopleStore, tokens, templates, channels, batches } = state
  return (
    JSON.stringify([
      [OUTSIDE, UNLABELLED].map((mac) => [
        { ...machines.peek(asMac(mac)), last_seen_at: null },
        runs.list({ mac, limit: 100 }),
      ]),
      peopleStore.list().map((person) => ({ ...person, seen_at: null })),
      (await tokens.list()).map((token) => ({ ...token, last_used_at: null })),
      templates.list(),
      channels.list(),
      batches.list().map(({ id, paused_at }) => [id, paused_at]),
    ])
      // A run that says nothing for a while stalls by itself.
      .replaceAll(/"stalled":(?:true|false)/g, '')
  )
}

interface Targets {
  readonly macs: readonly string[]
  /** By the part of the path that stands before them; the last ones are for all others. */
  readonly ids: readonly (readonly [part: string, ids: readonly string[]])[]
}

/** The paths of a route for these. */
function fill(path: string, { macs, ids }: Targets): readonly string[] {
  const [, fitting = []] = ids.find(([part]) => path.includes(part)) ?? []
  return macs.flatMap((mac) =>
    fitting.map((id) =>
      path
        .replace(':mac', mac)
        .replace(/:(?:id|run)\b/, id)
        .replace(/:\w+/g, 'canary'),
    ),
  )
}

/** A body of each kind; what is in it reaches for what is outside. */
const bodiesOf = ({ takes }: Route): readonly RequestInit[] => {
  if (takes === 'form') {
    const fields = { confirm: 'yes', mac: OUTSIDE, labels: 'lab', q: 'canary', action: 'delete' }
    return [{ body: new URLSearchParams(fields) }, { body: new URLSearchParams() }]
  }
  if (takes === undefined) return [{}]
  const reaching = { macs: [OUTSIDE], action: 'delete', labels: ['lab'], parameters: {} }
  return [asJson(reaching), asJson({})]
}

/** These end the session of who asks, or make what they may make. */
const OF_THEMSELVES = /^\/ui\/(logout|account|theme|keys)/

/** What whoever administrates may do would end it for all others: whether they are let in is asked by GET alone. */
function isTried({ method, path }: Route, asker: Asker, verdict: Verdict): boolean {
  if (verdict !== 'admitted') return verdict !== 'open'
  return !OF_THEMSELVES.test(path) && (method === 'GET' || asker.isScoped)
}

/**
 * Asks every route as everybody; resolves to what went wrong, in words, and to the number of requests.
 * `names`: only these callers, each with one path and one body a route; null: all of it.
 */
export async function askEverything(names: readonly string[] | null) {
  await using server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  const { batches, events } = await hideCanaries(server)
  const all = await openAskers(server)
  const askers = all.filter(({ name }) => names?.includes(name) !== false)
  const outside: Targets = {
    macs: [OUTSIDE, UNLABELLED],
    ids: [
      ['/batches/', [batches.outside, batches.mixed]],
      ['/runs/', [runIdOf(1)]],
      ['', [String(events[0])]],
    ],
  }
  const wrong: string[] = []
  let asked = 0
  for (const route of server.routes) {
    for (const asker of askers) {
      const verdict = expect(route, asker)
      if (!isTried(route, asker, verdict)) continue
      const isLimited = asker.isScoped || verdict !== 'admitted'
      const before = await snapshot(server)
      const requests = listRequests(route, isLimited ? outside : NOTHING)
      for (const request of asker.isScoped && names === null ? requests : requests.slice(0, 1)) {
        wrong.push(...(await judge(asker, request, verdict, isLimited)))
        asked += 1
      }
      const changed = describeChange(before, await snapshot(server))
      if (changed !== null) wrong.push(`${asker.name}: ${nameOf(route)} changes ${changed}`)
    }
  }
  return { wrong, asked }
}

const NOTHING: Targets = { macs: [NOWHERE], ids: [['', ['x']]] }

interface Request {
  readonly path: string
  readonly init: RequestInit
}

const listRequests = (route: Route, targets: Targets): readonly Request[] =>
  [...new Set(fill(route.path, targets))].flatMap((path) =>
    bodiesOf(route).map((body) => ({ path, init: { ...body, method: route.method } })),
  )

/** Asks once; resolves to what is wrong with the answer. */
async function judge(
  { name, ask }: Asker,
  { path, init }: Request,
  verdict: Verdict,
  isLimited: boolean,
): Promise<readonly string[]> {
  const who = `${name}: ${init.method} ${path}`
  const answer = await ask(path, init)
  const [got, text] = [read(answer), await readSome(answer)]
  const wrong = got === verdict ? [] : [`${who} is ${got} (${answer.status}), not ${verdict}`]
  const sent = init.body === undefined ? [] : [OUTSIDE, 'canary']
  const told = `${text}${JSON.stringify([...answer.headers])}`
  const found = isLimited ? CANARY.exec(without(told, [...path.split('/'), ...sent])) : null
  return found === null ? wrong : [...wrong, `${who} tells ${found[0]}`]
}

function describeChange(before: string, after: string): string | null {
  if (before === after) return null
  const at = [...after].findIndex((letter, index) => letter !== before[index])
  return `${before.slice(at - 60, at + 40)} → ${after.slice(at - 60, at + 40)}`
}

/** What was asked for stands in forms and links of an answer; a canary goes on behind its first word. */
const without = (text: string, words: readonly string[]): string =>
  words
    .filter((word) => CANARY.test(word))
    .flatMap((word) => [word, encodeURIComponent(word)])
    .reduce((rest, word) => rest.replaceAll(new RegExp(`${word}(?!-)`, 'g'), ''), text)
