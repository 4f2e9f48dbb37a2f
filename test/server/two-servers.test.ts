/** The compose file with two servers: compose accepts it, and its commands, settings and health checks run here without containers. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { readBlocks } from '#test/support/docs.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { until } from '#test/support/server/image-cache.ts'
import { macOf } from '#test/support/server/state.ts'
import { startFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('two servers in containers')
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
  const postgres = undo.use(await startPostgres({ settings, port: Number(ours.get('5432')) }))
  await postgres.query('postgres', 'CREATE DATABASE flasher')
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
