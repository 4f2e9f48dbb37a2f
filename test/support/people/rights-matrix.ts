/** The matrix of rights: every route that there is, asked by everybody, with canaries outside of the scope. */
import * as assert from 'uvu/assert'
import type { Tokens } from '#fleet/access/tokens.ts'
import type { Route } from '#kit/web/answers/route.ts'
import {
  permits,
  ROLES,
  SCOPES,
  scopesOf,
  type PageScope,
  type Role,
  type Scope,
} from '#kit/web/answers/rules/rights.ts'
import { addPerson, createCurrentServer, PERSON_PASSWORD } from './current-server.ts'
import { asMac, CANARY, hideCanaries, NOWHERE, OUTSIDE, readSome, UNLABELLED } from './canaries.ts'
import type { CurrentServer } from './current-server.ts'
import { EXPECTED, nameOf, type Expectation } from './expected-routes.ts'
import { SOURCE } from '../capture/uploads.ts'
import { runIdOf } from '../server/runs.ts'
import { asJson } from '../server/server.ts'
import { PASSWORD } from '../server/assembled.ts'

export type Ask = (path: string, init?: RequestInit) => Promise<Response>

export interface Asker {
  readonly name: string
  /** What they may do; null: they are nobody. */
  readonly scopes: readonly Scope[] | null
  readonly isToken: boolean
  /** Whether they see some of the machines alone. */
  readonly isScoped: boolean
  readonly ask: Ask
}

/** What is asked, and by whom. */
export interface Scene {
  readonly routes: readonly Route[]
  readonly askers: readonly Asker[]
  readonly expected: ReadonlyMap<string, Expectation>
  readonly outside: Targets
  /** All that nobody here may change: the machines outside, and what is of the server alone. */
  snapshot(): Promise<unknown>
}

/** The scope of people with one: none of the canaries has that label. */
const LAB = ['lab']

export const askWith =
  (request: Ask, header: 'authorization' | 'cookie', value: string): Ask =>
  (path, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set(header, value)
    return request(path, { ...init, headers })
  }

async function openToken(
  tokens: Pick<Tokens, 'create'>,
  request: Ask,
  { name, scopes, owner }: { name: string; scopes: readonly Scope[]; owner: string | null },
): Promise<Ask> {
  const made = await tokens.create({ name, scopes, expires_at: null, owner }, 100)
  assert.ok(made.ok)
  return askWith(request, 'authorization', `Bearer ${made.value.token}`)
}

/** Programs with one scope each, and who has none. */
export async function openPrograms(
  tokens: Pick<Tokens, 'create'>,
  request: Ask,
): Promise<readonly Asker[]> {
  const common = { isToken: true, isScoped: false } as const
  const wrong = askWith(request, 'authorization', 'Bearer flasher_nothing')
  const programs: Asker[] = [
    { ...common, name: 'nobody', scopes: null, isToken: false, ask: request },
    { ...common, name: 'a wrong token', scopes: null, ask: wrong },
  ]
  for (const scope of SCOPES) {
    const made = { name: `only ${scope}`, scopes: [scope], owner: null }
    const ask = await openToken(tokens, request, made)
    programs.push({ ...common, name: `token ${scope}`, scopes: [scope], ask })
  }
  return programs
}

/** The sessions and tokens of people of a server; `request`: another one that they ask. */
export async function openPeople(
  server: CurrentServer,
  request: Ask = server.request,
): Promise<readonly Asker[]> {
  const { peopleStore, tokens } = server.state
  const logIn = async (fields: Readonly<Record<string, string>>) =>
    askWith(request, 'cookie', (await server.logIn(fields)).cookie)
  const ofPeople = async (role: Role | null, labels: readonly string[]) => {
    const name = `${role ?? 'none'}-${labels.join('-') || 'all'}`
    await addPerson(server, name, role ?? 'look', labels)
    const owner = peopleStore.findByName(name)?.id ?? ''
    if (role === null) await peopleStore.setRights(owner, { role })
    const common = { scopes: scopesOf(role), isScoped: labels.length > 0 }
    const session = await logIn({ username: name, password: PERSON_PASSWORD })
    const token = await openToken(tokens, request, { name, scopes: SCOPES, owner })
    return [
      { ...common, name, isToken: false, ask: session },
      { ...common, name: `${name}'s`, isToken: true, ask: token },
    ]
  }
  const people: Asker[] = []
  for (const role of [null, ...ROLES]) people.push(...(await ofPeople(role, [])))
  for (const role of ['look', 'operate'] as const) people.push(...(await ofPeople(role, LAB)))
  const nameless = await logIn({ password: PASSWORD })
  const all = { scopes: SCOPES, isToken: false, isScoped: false }
  return [...people, { ...all, name: 'administrator', ask: nameless }]
}

type Verdict = 'open' | 'login' | 'forbidden' | 'admitted'

/** People see their own tokens; a program sees none of them. */
const needOfToken = (route: Route, need: PageScope): PageScope =>
  nameOf(route) === 'GET /tokens' ? 'admin' : need

function find(expected: Scene['expected'], route: Route): Expectation {
  const found = expected.get(nameOf(route))
  assert.ok(found !== undefined, `${nameOf(route)} stands in expected-routes.ts`)
  return found
}

/** Pages take no token: whoever shows one is nobody there. */
const isNobody = ({ access }: Route, isToken: boolean) => isToken && typeof access === 'object'

function expect(
  route: Route,
  { need, reach }: Expectation,
  { scopes, isToken, isScoped }: Asker,
): Verdict {
  if (need === 'open') return 'open'
  // Nobody here has the token of that one upload.
  if (need === 'upload' || scopes === null || isNobody(route, isToken)) return 'login'
  const wanted = isToken ? needOfToken(route, need) : need
  if (wanted !== 'own' && !permits(scopes, wanted)) return 'forbidden'
  return isScoped && reach === 'fleet' ? 'forbidden' : 'admitted'
}

function read(answer: Response): Exclude<Verdict, 'open'> {
  const to = answer.headers.get('location') ?? ''
  const isLogin = answer.status === 303 && to.startsWith('/ui/login')
  if (isLogin || answer.status === 401 || answer.status === 429) return 'login'
  return answer.status === 403 ? 'forbidden' : 'admitted'
}

async function snapshotState({ state }: CurrentServer) {
  const { machines, runs, peopleStore, tokens, templates, channels, batches } = state
  return [
    [OUTSIDE, UNLABELLED].map((mac) => [
      { ...machines.peek(asMac(mac)), last_seen_at: null },
      runs.list({ mac, limit: 100 }),
    ]),
    peopleStore.list().map((person) => ({ ...person, seen_at: null })),
    (await tokens.list()).map((token) => ({ ...token, last_used_at: null })),
    templates.list(),
    channels.list(),
    batches.list().map(({ id, paused_at }) => [id, paused_at]),
  ]
}

interface Targets {
  readonly macs: readonly string[]
  /** By the part of the path that stands before them; the last ones are for all others. */
  readonly ids: readonly (readonly [part: string, ids: readonly string[]])[]
  /** What queries and forms say besides. */
  readonly fields?: Readonly<Record<string, string>>
}

/** The paths of a route for these. */
function fill(path: string, { macs, ids }: Targets): readonly string[] {
  const [, fitting = []] = ids.find(([part]) => path.includes(part)) ?? []
  return macs.flatMap((mac) =>
    fitting.map((id) =>
      path
        .replace(/:(?:id|run)\b/, id)
        .replace(/:(?!mac)\w+/g, 'canary')
        .replace(':mac', mac),
    ),
  )
}

const CAPTURE = { name: 'canary.img.zst', source: SOURCE }

/** A body of each kind; what is in it reaches for what is outside. */
const bodiesOf = ({ takes }: Route, more: Targets['fields']): readonly RequestInit[] => {
  if (takes === 'form') {
    const fields = { confirm: 'yes', mac: OUTSIDE, labels: 'lab', q: 'canary', action: 'delete' }
    return [{ body: new URLSearchParams({ ...fields, ...more }) }, { body: new URLSearchParams() }]
  }
  if (takes === undefined) return [{}]
  const reaching = {
    macs: [OUTSIDE],
    action: 'delete',
    labels: ['lab'],
    parameters: {},
    ...CAPTURE,
  }
  return [asJson(reaching), asJson({})]
}

/** These end the session of who asks, or make what they may make. */
const OF_THEMSELVES = /^\/ui\/(logout|account)/

/** What whoever administrates may do would end it for all others: whether they are let in is asked by GET alone. */
function isTried({ method, path }: Route, asker: Asker, verdict: Verdict): boolean {
  if (verdict !== 'admitted') return verdict !== 'open'
  return !OF_THEMSELVES.test(path) && (method === 'GET' || asker.isScoped)
}

/** Opens the current line with canaries. */
export async function openCurrentScene() {
  const server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  const { batches, events } = await hideCanaries(server)
  const { routes, state, request } = server
  return {
    routes,
    askers: [...(await openPrograms(state.tokens, request)), ...(await openPeople(server))],
    expected: EXPECTED.server,
    outside: {
      macs: [OUTSIDE, UNLABELLED],
      ids: [
        ['/batches/', [batches.outside, batches.mixed]],
        ['/runs/', [runIdOf(1)]],
        ['', [String(events[0])]],
      ],
    },
    snapshot: () => snapshotState(server),
    [Symbol.asyncDispose]: server[Symbol.asyncDispose],
  } as const satisfies Scene & AsyncDisposable
}

/**
 * Asks every route as everybody; resolves to what went wrong, in words, and to the number of requests.
 * `names`: only these callers, each with one path and one body a route; null: all of it.
 */
export async function askEverything(scene: Scene, names: readonly string[] | null) {
  const { routes, expected, outside } = scene
  const askers = scene.askers.filter(({ name }) => names?.includes(name) !== false)
  const snapshot = async () =>
    // A run that says nothing for a while stalls by itself.
    JSON.stringify(await scene.snapshot()).replaceAll(/"stalled":(?:true|false)/g, '')
  const wrong: string[] = []
  let asked = 0
  let before = await snapshot()
  for (const route of routes) {
    for (const asker of askers) {
      const verdict = expect(route, find(expected, route), asker)
      if (!isTried(route, asker, verdict)) continue
      const isLimited = asker.isScoped || verdict !== 'admitted'
      const requests = listRequests(route, isLimited ? outside : NOTHING)
      for (const request of asker.isScoped && names === null ? requests : requests.slice(0, 1)) {
        wrong.push(...(await judge(asker, request, verdict, isLimited)))
        asked += 1
      }
      const after = await snapshot()
      const changed = describeChange(before, after)
      before = after
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
    bodiesOf(route, targets.fields).map((body) => ({
      path: `${path}?${new URLSearchParams(targets.fields)}`,
      init: { ...body, method: route.method },
    })),
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
  const found = isLimited ? CANARY.exec(without(told, [...path.split(/[/?=&]/), ...sent])) : null
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
