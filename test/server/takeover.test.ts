/** Real servers on one database, killed and stopped while people change machines. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { label, proveAway } from '#test/support/cluster/database-away.ts'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { askAs, startServer } from '#test/support/cluster/servers.ts'
import { SHORT_HOLD, SHORT_LEASE, timesOf } from '#test/support/cluster/times.ts'
import { readBlocks } from '#test/support/docs.ts'
import { findPort } from '#test/support/http/ports.ts'
import { opened } from '#test/support/opened.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { until } from '#test/support/server/image-cache.ts'
import { macOf } from '#test/support/server/state.ts'
import { startFlasher } from '#test/support/terminal/flasher.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('takeovers')
const postgres = opened(test, () => startPostgres())
const PASSWORD = 'a password of the tests'
const PROGRAM = fileURLToPath(new URL('../../runtime/bin/flasher-web.mjs', import.meta.url))

/** A server as a process, which may stand by. */
async function startMember(home: Awaited<ReturnType<typeof createServerHome>>, database: string) {
  const port = await findPort()
  const url = `http://127.0.0.1:${port}`
  const own = { FLASHER_SERVER_PORT: String(port), FLASHER_ADMIN_PASSWORD: PASSWORD }
  const env = { ...home.env, ...own, FLASHER_DATABASE_URL: database, ...timesOf(SHORT_LEASE) }
  const started = startFlasher([], { program: PROGRAM, env })
  return {
    ...started,
    url,
    async lead() {
      await started.saw('Pages:')
      const { cookie } = await login(url, PASSWORD)
      return (path: string, init: RequestInit = {}) =>
        fetch(`${url}${path}`, { ...init, headers: { cookie, 'content-type': 'application/json' } })
    },
    [Symbol.asyncDispose]: async () => {
      started.child.kill('SIGCONT')
      started.child.kill('SIGTERM')
      await started.ended
    },
  }
}

type Ask = Awaited<ReturnType<Awaited<ReturnType<typeof startMember>>['lead']>>

/** Several people who name one machine after the other, until the server answers no more. */
function changeMachines(ask: Ask, from: number) {
  const acknowledged: string[] = []
  let next = from
  const work = async (): Promise<void> => {
    const mac = macOf((next += 1))
    const answer = await ask(`/machines/${mac}`, { method: 'PUT', body: '{"labels":["kept"]}' })
    if (answer.status !== 200) return
    acknowledged.push(mac)
    await work()
  }
  const ended = Promise.allSettled([work(), work(), work(), work()])
  return { acknowledged, ended }
}

const untilSome = ({ acknowledged }: Pick<ReturnType<typeof changeMachines>, 'acknowledged'>) =>
  waitUntil(
    async () => acknowledged.length > 20,
    () => 'something was acknowledged',
  )

async function findMissing(ask: Ask, acknowledged: readonly string[]) {
  const answers = await Promise.all(acknowledged.map((mac) => ask(`/machines/${mac}`)))
  return acknowledged.filter((_, at) => answers[at]?.status !== 200)
}

test('what a leader acknowledged is there after its kill and its stop, and a live leader keeps the lease', async () => {
  const name = await postgres().create()
  const url = postgres().urlOf(name)
  await using homes = new AsyncDisposableStack()
  const home = async () => homes.use(await createServerHome())
  const firstHome = await home()
  await using first = await startMember(firstHome, url)
  const askFirst = await first.lead()
  await using second = await startMember(await home(), url)
  await second.saw('standing by')

  const before = changeMachines(askFirst, 0)
  await untilSome(before)
  first.child.kill('SIGKILL')
  const askSecond = await second.lead()
  await before.ended
  assert.equal(await findMissing(askSecond, before.acknowledged), [])

  await using third = await startMember(await home(), url)
  await third.saw('standing by')
  const later = changeMachines(askSecond, 100_000)
  await untilSome(later)
  second.child.kill('SIGSTOP')
  const askThird = await third.lead()
  await using fourth = await startMember(firstHome, url)
  await fourth.saw('standing by')
  const [stored] = await postgres().query(name, 'SELECT count(*)::int AS n FROM flasher.machines')
  second.child.kill('SIGCONT')
  await later.ended
  const { code, stderr } = await second.ended
  assert.is(code, 1, stderr)
  assert.match(stderr, 'flasher-web: another server leads this fleet now')
  // What came late was refused: it is nowhere.
  assert.equal(await postgres().query(name, 'SELECT count(*)::int AS n FROM flasher.machines'), [
    stored,
  ])
  assert.equal(await findMissing(askThird, later.acknowledged), [])

  // The end of a former leader's session is none of the present one's.
  const beat = async () =>
    Number((await postgres().query(name, 'SELECT beat FROM flasher.lease'))[0]?.['beat'])
  const present = await beat()
  await waitUntil(
    async () => (await beat()) > present + 1,
    () => 'the lease was renewed twice',
  )
  const put = { method: 'PUT', body: '{"labels":["after"]}' }
  assert.is((await askThird(`/machines/${macOf(7)}`, put)).status, 200)

  // Who stands by ends in order, too.
  fourth.child.kill('SIGTERM')
  const ended = await fourth.ended
  assert.is(ended.code, 0, ended.stderr)
})

/**
 * Faults of the database and between servers that only whole servers show; each ends in a sentence and loses nothing.
 * The others: refused databases in test/fleet/cluster/refusals.test.ts, full, read-only, older and slow ones beside it,
 * a state without its database and a restore in contract.test.ts, faults of registries in test/cache/registry-faults.test.ts.
 */
const TIMES = timesOf({ ...SHORT_LEASE, ...SHORT_HOLD })
const KEY = { ...TIMES, FLASHER_DATABASE_KEY: 'a key of at least thirty-two characters' }
/** Sets the clock of a process by the hour: 1 is ahead, 2 is behind. */
const CLOCK = new URL('../bench/cluster/cluster-clock.ts', import.meta.url).href
const clockOf = (step: number) => ({
  NODE_OPTIONS: `--import=${CLOCK}`,
  BENCH_CLOCK_STEP: String(step),
})

test('away at the start and later: it is said once each time, and what was acknowledged is there', async () =>
  await proveAway({ startMs: 1500, laterMs: 0, env: timesOf(SHORT_HOLD) }))

test('clocks an hour apart and set back, and a leader that the other one does not reach: nobody takes over for that', async () => {
  await using own = await startPostgres()
  const name = await own.create()
  const url = own.urlOf(name)
  const nobody = `http://127.0.0.1:${await findPort()}`
  await using ahead = await startServer(url, {
    ...KEY,
    ...clockOf(1),
    FLASHER_DATABASE_OWN_URL: nobody,
  })
  await ahead.leads()
  await using behind = await startServer(url, { ...KEY, ...clockOf(2) })
  await behind.standsBy()
  const ask = await askAs(ahead)
  const mac = macOf(1)
  assert.is((await ask(`/machines/${mac}`, label('kept'))).status, 200)
  const refused = await fetch(`${behind.url}/machines/${mac}`)
  assert.is(refused.status, 503)
  assert.match(await refused.text(), /no server leads this fleet/)
  await behind.process().saw(`cannot be reached at ${nobody}`)
  await behind.process().saw('Its database.own_url must be right')
  assert.match(await (await fetch(`${behind.url}/pxe/${mac}`)).text(), /no server leads this fleet/)
  // Both clocks are set, by an hour or two.
  ahead.kill('SIGUSR2')
  behind.kill('SIGUSR2')
  await sleep(1.5 * SHORT_LEASE.leaseMs)
  const [lease] = await own.query(name, 'SELECT epoch FROM flasher.lease')
  assert.is(Number(lease?.['epoch']), 1, 'nobody else led')
  assert.is((await ask(`/machines/${mac}`, label('later'))).status, 200)

  ahead.kill('SIGKILL')
  await behind.leads()
  const next = await askAs(behind)
  assert.equal((await (await next(`/machines/${mac}`)).json()).labels, ['later'])
  assert.is((await next(`/machines/${macOf(2)}`, label('new'))).status, 200)
  assert.ok((await login(behind.url, 'a password of the tests')).cookie)
})

const FILE = 'docs/containers/two-servers.yaml'

interface Service {
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string | number>>
  readonly healthcheck?: { readonly test: readonly string[] }
}

/** The documented lines make `.env`; their last one starts everything, and is left out. */
function makeEnvironment(folder: string): Readonly<Record<string, string>> {
  const block = readBlocks('appliance.md', 'sh').find((each) => each.includes('>.env')) ?? ''
  execFileSync('sh', ['-ec', block.replace(/^docker compose .*$/m, '')], { cwd: folder })
  const lines = readFileSync(join(folder, '.env'), 'utf8').trim().split('\n')
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/)))
}

/** The services as compose reads them, each documented port replaced by one of ours. */
function readServices(env: Readonly<Record<string, string>>, toOurs: (text: string) => string) {
  const read = execFileSync('docker-compose', ['--file', FILE, 'config'], {
    env: { PATH: process.env['PATH'], ...env },
  })
  const script = 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)["services"]))'
  const text = execFileSync('python3', ['-c', script], { input: read, encoding: 'utf8' })
  const services: Readonly<Record<string, Service>> = JSON.parse(toOurs(text))
  return (name: string): Service => services[name] ?? {}
}

const environmentOf = ({ environment = {} }: Service): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]))

/** What the health check of a service with Node says. */
async function isHealthy(service: Service): Promise<boolean> {
  const [kind, node, ...words] = service.healthcheck?.test ?? []
  assert.equal([kind, node], ['CMD', '/usr/lib/flasher/node'])
  const child = spawn(process.execPath, words, { env: environmentOf(service), stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  return code === 0
}

function startService(
  home: Awaited<ReturnType<typeof createServerHome>>,
  service: Service,
  program: string,
) {
  const path = fileURLToPath(new URL(`../../runtime/bin/${program}.ts`, import.meta.url))
  const started = startFlasher([], {
    program: path,
    env: { ...home.env, FLASHER_CACHE_HOST: '127.0.0.1', ...environmentOf(service) },
  })
  return {
    kill: () => started.child.kill('SIGKILL'),
    async [Symbol.asyncDispose]() {
      started.child.kill('SIGTERM')
      await started.ended
    },
  }
}

/** A program that answers once `isUp` resolves to true. */
async function startOther(
  argv: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
) {
  const [program, ...words] = argv
  const child = spawn(program, words, {
    env: { PATH: process.env['PATH'], ...env },
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

const answers = (url: string) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )

const readWithoutSecrets = () =>
  execFileSync('docker-compose', ['--file', FILE, 'config', '--quiet'], {
    env: { PATH: process.env['PATH'], ADDRESS: '192.0.2.10' },
    stdio: 'pipe',
  })

test('compose wants each secret by its name', () => {
  assert.throws(readWithoutSecrets, /is missing in \.env/)
})

/** The database, the registry, the cache and the balancer of the file run; the servers are started by `start`. */
async function openSite() {
  await using undo = new AsyncDisposableStack()
  const makeHome = async () => undo.use(await createServerHome())
  const home = await makeHome()
  const documented = ['8080', '8090', '8081', '8000', '5432', '5000']
  const ours = new Map<string, string>()
  for (const port of documented) ours.set(port, String(await findPort()))
  const toOurs = (text: string) =>
    text.replaceAll(/\b(8080|8090|8081|8000|5432|5000)\b/g, (port) => ours.get(port) ?? port)
  const env = makeEnvironment(home.dir)
  const serviceOf = readServices(env, toOurs)
  const at = (port: string) => `http://127.0.0.1:${ours.get(port)}`

  const settings = (serviceOf('database').command ?? []).filter((word) => word.includes('='))
  const own = undo.use(await startPostgres({ settings, port: Number(ours.get('5432')) }))
  await own.query('postgres', 'CREATE DATABASE flasher')
  const [check, ...words] = (serviceOf('database').healthcheck?.test ?? []).slice(1)
  execFileSync(check ?? '', [...words, `--port=${ours.get('5432')}`])

  writeFileSync(
    home.at('registry.yml'),
    JSON.stringify({
      version: '0.1',
      storage: { filesystem: { rootdirectory: home.at('registry') } },
    }),
  )
  undo.use(
    await startOther(
      ['docker-registry', 'serve', home.at('registry.yml')],
      environmentOf(serviceOf('registry')),
    ),
  )
  const registryUrl = serviceOf('registry').healthcheck?.test.at(-1) ?? ''
  await until(() => answers(registryUrl))

  undo.use(startService(await makeHome(), serviceOf('cache'), 'flasher-cache'))
  await until(() => isHealthy(serviceOf('cache')))

  await home.write(
    'haproxy.cfg',
    toOurs(readFileSync('docs/containers/two-servers.haproxy.cfg', 'utf8')),
  )
  undo.use(await startOther(['haproxy', '-db', '-f', home.at('haproxy.cfg')], {}))
  const held = undo.move()
  return {
    admin: env['ADMIN_PASSWORD'] ?? '',
    ports: ours,
    at,
    isReady: (name: string) => isHealthy(serviceOf(name)),
    start: async (name: string) =>
      held.use(startService(held.use(await createServerHome()), serviceOf(name), 'flasher-web')),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

test('one server is ready, people come to it by one address, and to the other one after its death', async () => {
  await using site = await openSite()
  const { at, isReady } = site
  const first = await site.start('web-a')
  await until(() => isReady('web-a'))
  await site.start('web-b')
  await until(() => answers(`${at('8000')}/healthz?ready`))

  const { cookie, status } = await login(at('8000'), site.admin)
  assert.is(status, 303)
  const headers = { cookie, 'content-type': 'application/json' }
  const machine = `${at('8000')}/machines/${macOf(1)}`
  const put = await fetch(machine, { method: 'PUT', headers, body: '{"labels":["kept"]}' })
  assert.is(put.status, 200)
  const script = await (await fetch(`${at('8000')}/boot/autoexec.ipxe`)).text()
  for (const port of ['8080', '8090'])
    assert.match(script, `http://192.0.2.10:${site.ports.get(port)}`)

  first.kill()
  await until(() => isReady('web-b'))
  await until(() => answers(`${at('8000')}/healthz?ready`))
  // The session goes on: both servers have its key.
  const kept = await fetch(machine, { headers: { cookie } })
  assert.is(kept.status, 200)
  assert.match(await kept.text(), '"kept"')
})

test.run()
