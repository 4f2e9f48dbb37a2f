/** A machine server for tests: the real services in a temporary state directory, driven in process. */
import { UPLOAD_KEY } from '../../../runtime/engine/capture/rules/upload-token.ts'
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { page } from '../../../runtime/kit/web/answers/answers.ts'
import { createBatches } from '../../../runtime/fleet/batch/batches.ts'
import { createDatabase } from '../../../runtime/fleet/state/database.ts'
import { createChanges } from '../../../runtime/kit/host/changes.ts'
import { listOthers } from '../../../runtime/fleet/boot/rules/other-servers.ts'
import { createJournal } from '../../../runtime/fleet/state/journal.ts'
import { createMachines } from '../../../runtime/fleet/state/machines.ts'
import { createBootStamps } from '../../../runtime/fleet/run/boot-stamps.ts'
import { createRuns } from '../../../runtime/fleet/run/runs.ts'
import { createSecret, deriveSecret, type Secret } from '../../../runtime/kit/web/access/secret.ts'
import { createProofs, type Proofs } from '../../../runtime/fleet/proof/proofs.ts'
import { createTemplates, type Templates } from '../../../runtime/fleet/first-boot/templates.ts'
import { createPeople } from '../../../runtime/fleet/access/people.ts'
import { createTokens } from '../../../runtime/fleet/access/tokens.ts'
import type { CatalogEntry } from '../../../runtime/engine/catalog/rules/catalog.ts'
import {
  createBatchKeeper,
  type BatchKeeper,
} from '../../../runtime/server/current/batches/batch-keeper.ts'
import { createFlashGate } from '../../../runtime/server/current/flash-gate.ts'
import { createOrderClock } from '../../../runtime/server/current/order-expiry.ts'
import { findNameOwner } from '../../../runtime/server/current/captures/rules/capture-owner.ts'
import { createMachineLine } from '../../../runtime/server/current/machine-line.ts'
import type { Machine } from '../../../runtime/server/current/rules/machine.ts'
import { SCHEMAS } from '../../../runtime/server/current/rules/api-schema.ts'
import { PXE_RULES } from './machine-fixture.ts'
import { parseRecord } from '../../../runtime/server/current/rules/record.ts'
import { createEntrance } from '../../../runtime/kit/web/http/entrance.ts'
import { tuneServer } from '../../../runtime/kit/web/answers/limits.ts'
import type { ServerLine } from '../../../runtime/server/routes/line.ts'
import type { MachinePower, Site } from '../../../runtime/server/routes/site.ts'
import type { ServerViews } from '../../../runtime/server/routes/site.ts'
import type { WebSettings } from '../../../runtime/kit/web/answers/caller.ts'
import type { Route } from '../../../runtime/kit/web/answers/route.ts'
import { createServer, type ServerOptions } from '../../../runtime/server/routes/server.ts'
import { createBootFolder } from './twins.ts'

export const PASSWORD = 'correct horse ünicode'

/** What routes of the line need besides the site. */
interface TestRules {
  readonly templates: Templates
  readonly bootKey: Secret
  settings(): typeof PXE_RULES
  readonly proofs: Proofs
  readonly keeper: BatchKeeper
  proof(): NonNullable<TestServerOptions['proof']>
}

/** What of a test server the control of power needs. */
export type PowerServices = Pick<ServerOptions<Machine>, 'machines' | 'runs' | 'journal' | 'log'>

export interface TestServerOptions {
  readonly settings?: Partial<WebSettings>
  readonly catalog?: readonly CatalogEntry[]
  readonly line?: Partial<ServerLine<Machine>>
  readonly views?: Partial<ServerViews<Machine>>
  routes?(site: Site<Machine>, rules: TestRules): readonly Route[]
  readonly checkPassword?: ServerOptions<Machine>['checkPassword']
  readonly now?: () => Date
  /** Milliseconds of a clock that nobody sets; goes with `now` where it is left out. */
  readonly elapsed?: () => number
  readonly pxe?: Partial<typeof PXE_RULES>
  /** `[pxe] servers`. */
  readonly servers?: readonly string[]
  /** Absent: one that nobody asks. Null: there is no cache service. */
  readonly cacheUrl?: () => string | null
  /** Where an image is besides the caches; absent: nowhere. */
  findOrigin?(image: CatalogEntry): string | null
  power?(parts: PowerServices): MachinePower
  /** `[proof]`; absent: nobody waits for first boots. */
  readonly proof?: {
    readonly enabled: boolean
    readonly limit: number
    readonly url: string
    readonly port?: number
  }
  /** What is seen of machines from outside; absent: nothing. */
  readonly witnesses?: Pick<Parameters<typeof createProofs>[0], 'findAnswers' | 'readPort'>
}

const SETTINGS: WebSettings = {
  publicUrl: null,
  allowedHosts: [],
  trustedProxies: [],
  discoveriesPerMinute: 600,
  mostUnassigned: 20_000,
  uploadMostBytes: 1024 * 1024,
  openMetrics: false,
}

const VIEWS: ServerViews<Machine> = {
  match: (all, query) => {
    const q = query.get('q') ?? ''
    return all.filter(({ mac, labels }) => mac.includes(q) || labels.includes(q))
  },
  columnsOf: () => '',
  renderRow: ({ mac, boot_mode, last_seen_ip }) =>
    `<tr id="m-${mac}"><td>${mac}</td><td>${boot_mode}</td><td>${last_seen_ip ?? ''}</td></tr>`,
  renderBar: ({ mac, phase, step_bytes }) => `<span id="b-${mac}">${phase} ${step_bytes}</span>`,
  renderOnward: ({ to }) => `<a href="${to}"></a>`,
  renderRefused: ({ text }) => text,
  renderLogin: ({ error }) => `<form>${error ?? 'welcome'}</form>`,
  renderDocument: ({ title, body }) => `<h1>${title}</h1>${String(body)}`,
  renderError: ({ status, detail }) => `<h1>${status}</h1><p>${detail}</p>`,
}

const dashboardAlone = (): readonly Route[] => [
  {
    method: 'GET',
    path: '/ui/dashboard',
    access: 'page',
    handle: () => page('<h1>dashboard</h1>'),
  },
]

/** `await using`: everything is closed and removed at the end, also of a test that failed. */
export async function createTestServer(options: TestServerOptions = {}) {
  // The server's own timers keep no process alive; without a socket nothing else does.
  const alive = setInterval(() => {}, 1000)
  const dir = await mkdtemp(join(tmpdir(), 'flasher-web-'))
  const now = options.now ?? (() => new Date())
  const boot = join(dir, 'boot')
  await mkdir(boot)
  const database = await createDatabase({
    path: join(dir, 'state.db'),
    release: '1.2.3',
    line: 'current',
    now,
  })
  const changes = createChanges()
  const log: string[] = []
  const note = (message: string) => void log.push(message)
  const logs = { debug: note, info: note, warn: note, error: note }
  const password = { current: PASSWORD }
  const settings: { current: WebSettings } = { current: { ...SETTINGS, ...options.settings } }
  const entries = options.catalog ?? []
  const elapsed = options.elapsed ?? (() => now().getTime())
  const machines = createMachines<Machine>(database, { parseRecord, elapsed })
  const journal = createJournal(database, { changes, now })
  const runs = createRuns(database, { changes, now, elapsed })
  const templates = createTemplates(database, { now })
  const snapshot = { entries, skipped: [], fetchedAt: null, error: null, isStale: false }
  const bootFiles = createBootFolder(boot)
  const secret = await createSecret({ path: join(dir, 'session-secret'), configured: '' })
  const pxe = () => ({ ...PXE_RULES, ...options.pxe })
  const gate = createFlashGate({
    find: machines.peek,
    settings: pxe,
    fleet: await machines.list(),
    silenceOf: machines.silenceOf,
    now,
    elapsed,
  })
  const otherServers = (base: string) => listOthers(options.servers ?? [], base)
  const { routes = dashboardAlone, cacheUrl = () => 'http://127.0.0.1:8081' } = options
  const bootKey = deriveSecret(secret, 'boot tokens')
  const findImage = (ref: string) => entries.find((entry) => entry.ref === ref) ?? null
  const batches = createBatches(database, { changes })
  const keeper = createBatchKeeper({ batches, machines, findImage, now })
  const line = createMachineLine({
    findImage,
    findNameOwner: (name, mac, sees) =>
      findNameOwner(name, mac, { images: entries, machines: machines.peekAll(), sees }),
    findTemplate: (name) => templates.find(name)?.template ?? null,
    sets: bootFiles.active,
    settings: pxe,
    placeOf: gate.placeOf,
    isPaused: batches.isPaused,
    isPast: createOrderClock({ fleet: machines.peekAll(), now, elapsed }).isPast,
    hasRun: (mac) => runs.findRunning(mac) !== null,
    bootKey,
    uploadKey: deriveSecret(secret, UPLOAD_KEY),
    cacheUrl,
    findOrigin: (image) => options.findOrigin?.(image) ?? null,
    otherServers,
  })
  const proof = () => options.proof ?? { enabled: false, limit: 0, url: '' }
  const proofs = createProofs({
    database,
    changes,
    ...options.witnesses,
    settings: proof,
    findCall: (mac) => machines.peek(mac)?.first_boot_taken_at ?? null,
    now,
    elapsed,
  })
  const people = createPeople(database, { now })
  await people.openSessions()
  const server = createServer<Machine>({
    elapsed,
    proof: proofs,
    stamps: createBootStamps(now),
    line: { ...line, ...options.line },
    views: { ...VIEWS, ...options.views },
    plugins: [
      () => ({ schemas: SCHEMAS }),
      () => ({
        routes: (site) =>
          routes(site, { templates, bootKey, settings: pxe, proofs, keeper, proof }),
      }),
    ],
    checkPassword: options.checkPassword ?? (async (given) => given === password.current),
    async setPassword(given) {
      password.current = given
    },
    batches: keeper.maker,
    onFlashSlot: gate.assign,
    otherServers,
    power: options.power?.({ machines, runs, journal, log: logs }),
    machines,
    journal,
    runs,
    changes,
    catalog: { snapshot: () => snapshot, refresh: async () => snapshot },
    bootFiles,
    tokens: createTokens(database, { now }),
    secret,
    book: people.sessions,
    settings: () => settings.current,
    now,
    log: logs,
    version: '1.2.3',
  })

  /** `ip`: where it comes from; absent: nobody knows. */
  async function request(
    path: string,
    { ip, ...init }: RequestInit & { readonly ip?: string } = {},
  ): Promise<Response> {
    const headers = new Headers(init.headers)
    if (!headers.has('host')) headers.set('host', 'flasher.test:8080')
    if (ip === undefined) return await server.app.request(path, { ...init, headers })
    const made = new Request(new URL(path, 'http://flasher.test:8080'), { ...init, headers })
    return await server.app.request(Object.defineProperty(made, 'ip', { value: ip }))
  }
  /** Logs in; what it returns sends the cookie along. */
  async function operator() {
    const answer = await request('/ui/login', {
      method: 'POST',
      body: new URLSearchParams({ password: PASSWORD }),
    })
    const cookie = cookieOf(answer)
    return async (path: string, init: RequestInit = {}) => {
      const headers = new Headers(init.headers)
      headers.set('cookie', cookie)
      return await request(path, { ...init, headers })
    }
  }

  return {
    ...server,
    dir,
    boot,
    log,
    changes,
    journal,
    runs,
    proofs,
    keeper,
    batches,
    machines,
    settings,
    request,
    operator,
    putBootFile: (name: string, bytes: string | Uint8Array) => writeFile(join(boot, name), bytes),
    async [Symbol.asyncDispose]() {
      clearInterval(alive)
      server.close()
      await database[Symbol.asyncDispose]()
      await rm(dir, { recursive: true })
    },
  }
}

export type TestServer = Awaited<ReturnType<typeof createTestServer>>

/** The same server behind a real socket. */
export async function listen(server: Pick<TestServer, 'app' | 'log'>) {
  const http = createHttpServer(
    createEntrance(server.app, { error: (message) => void server.log.push(message) }),
  )
  tuneServer(http)
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  const address = http.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    http,
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      await new Promise((resolve) => {
        http.close(resolve)
      })
    },
  }
}

/** `name=value` of the session cookie that an answer sets; empty: none. */
export const cookieOf = (answer: Response): string =>
  answer.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0] ?? '')
    .find((pair) => pair.startsWith('flasher-token=')) ?? ''

/** It answers, and logged no fault but those that a test calls a bug. */
export async function checkUp(server: TestServer): Promise<void> {
  assert.is((await server.request('/healthz')).status, 200)
  assert.equal(
    server.log.filter((line) => !line.includes('a bug')),
    [],
  )
}

export const asJson = (value: unknown, method = 'POST'): RequestInit => ({
  method,
  body: JSON.stringify(value),
  headers: { 'content-type': 'application/json' },
})

/** The body of an answer that must be a 200. */
export async function readJson(asked: Promise<Response>) {
  const answer = await asked
  assert.is(answer.status, 200)
  return await answer.json()
}
