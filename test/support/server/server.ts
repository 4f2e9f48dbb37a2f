/** A machine server for tests: the program's assembly with small pages and a catalog that stays as it is. */
import { createServer as createHttpServer } from 'node:http'
import * as assert from 'uvu/assert'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { FollowedCatalog } from '#engine/catalog/catalogs.ts'
import type { ActiveSets } from '#fleet/boot/boot-sets.ts'
import { page } from '#kit/web/answers/answers.ts'
import { tuneServer } from '#kit/web/answers/limits.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { createEntrance } from '#kit/web/http/entrance.ts'
import type { BatchKeeper } from '#server/current/batches/keeper/batch-keeper.ts'
import { openBootFiles } from '#server/current/assembly/netboot.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { AssemblyOptions } from '#server/current/server.ts'
import type { ServerViews, Site } from '#server/routes/site.ts'
import { openAssembled, type AssembledOptions } from './assembled.ts'

export interface TestServerOptions extends Pick<
  AssembledOptions,
  'env' | 'checkPassword' | 'power' | 'witnesses'
> {
  readonly assembly?: Pick<AssemblyOptions, 'findOrigin' | 'line'>
  /** The images that the cache service has, or what follows them. */
  readonly catalog?: readonly CatalogEntry[] | FollowedCatalog
  readonly views?: Partial<ServerViews<Machine>>
  /** Routes beside those of the line, or instead of some that it has. */
  routes?(site: Site<Machine>): readonly Route[]
  readonly now?: () => Date
  /** Milliseconds of a clock that nobody sets; goes with `now` where it is left out. */
  readonly elapsed?: () => number
  /** Absent: one that nobody asks. Null: there is no cache service. */
  readonly cacheUrl?: string | null
}

const ENV = { FLASHER_PXE_TOKENS: 'off', FLASHER_TUNING_MAX_UPLOAD_BYTES: String(1024 * 1024) }

/** Machines boot it although its files are not there. */
const SETS: ActiveSets = {
  x86_64: {
    arch: 'x86_64',
    version: '1.2.3',
    vmlinuz: 'flasher-netboot-pc-x86_64-v1.2.3.vmlinuz',
    initrd: 'flasher-netboot-pc-x86_64-v1.2.3.initrd',
    squashfs: 'flasher-netboot-pc-x86_64-v1.2.3.squashfs',
    squashfsSha256: 'd'.repeat(64),
  },
  arm64: null,
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
  renderTyped: ({ fields }) => JSON.stringify(fields),
  renderLogin: ({ error }) => `<form>${error ?? 'welcome'}</form>`,
  renderDocument: ({ title, body }) => `<h1>${title}</h1>${String(body)}`,
  renderError: ({ status, detail }) => `<h1>${status}</h1><p>${detail}</p>`,
}

const dashboardAlone = (): readonly Route[] => [
  {
    method: 'GET',
    path: '/ui/dashboard',
    access: { page: 'read' },
    handle: () => page('<h1>dashboard</h1>'),
  },
]

/** `await using`: everything is closed and removed at the end, also of a test that failed. */
export async function createTestServer(options: TestServerOptions = {}) {
  const { catalog = [], now = () => new Date(), routes = dashboardAlone } = options
  const { elapsed = () => now().getTime(), cacheUrl = 'http://127.0.0.1:8081' } = options
  const made: { site?: Site<Machine>; keeper?: BatchKeeper } = {}
  const createPages: NonNullable<AssemblyOptions['createPages']> = ({ services: { keeper } }) => ({
    views: { ...VIEWS, ...options.views },
    plugin(site) {
      Object.assign(made, { site, keeper })
      return { routes: (seen) => routes(seen) }
    },
  })
  const server = await openAssembled({
    ...options,
    env: { ...ENV, ...options.env },
    cacheBeside: cacheUrl,
    async openBoot(given) {
      const opened = await openBootFiles(given)
      return { ...opened, bootFiles: { ...opened.bootFiles, active: () => SETS } }
    },
    assembly: {
      clock: { now, elapsed },
      catalog: 'snapshot' in catalog ? catalog : createStill(catalog),
      createPages,
      ...options.assembly,
    },
  })
  const { site, keeper } = made
  if (site === undefined || keeper === undefined) throw new Error('the server makes its pages')
  // What a first start says is no fault.
  server.log.length = 0
  return { ...server, site, keeper }
}

export type TestServer = Awaited<ReturnType<typeof createTestServer>>

/** A test may change its entries: they are looked at anew each time. */
function createStill(entries: readonly CatalogEntry[]): FollowedCatalog {
  const snapshot = () => ({
    entries: [...entries],
    skipped: [],
    fetchedAt: null,
    error: null,
    isStale: false,
  })
  return { snapshot, refresh: async () => snapshot() }
}

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
