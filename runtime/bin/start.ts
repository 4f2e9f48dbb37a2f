/** `pnpm start`: runs the machine server, the cache service beside it unless another one is configured, and with `--proxy` the DHCP proxy. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { renderError } from '#kit/foundation/fault.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import { decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { renderOrigin } from '#cache/commands/configuration.ts'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { listProxyNetworks, renderRevision } from '#fleet/proxy/rules/wish.ts'
import { loadLine } from './line.ts'
import { listen, probe } from './listen.ts'
import { leave, openProcess } from './open-process.ts'

/** Where `pnpm build:images` leaves what it makes. */
const BUILT_DIR = fileURLToPath(new URL('../../dist', import.meta.url))
const PROGRAM = fileURLToPath(new URL('flasher-cache.mjs', import.meta.url))
const PROXY_PROGRAM = fileURLToPath(new URL('flasher-web-proxy.mjs', import.meta.url))
/** How many ports from the configured one on are tried. */
const MAX_PORTS = 20
/** A small board may take long at its first start; a cache that fails ends at once. */
const START_MS = 60_000

const opened = openProcess('flasher-web')
const { proxy, argv } = takeProxyFlag(opened.argv)
const environment = { ...opened, argv }
const { stderr, env } = environment
const log = createLog({
  program: 'flasher-web',
  stderr,
  style: decideTerminalStyle(env, stderr.isTTY),
})
let child: ChildProcess | null = null
let proxyProcess: ChildProcess | null = null
/** The server has ended; the cache ends with it. */
let isEnding = false

const { web } = await loadLine(environment)
type Environment = Parameters<typeof web>[0]
type StartCache = NonNullable<Environment['startCache']>
const withProxy = proxy === null ? {} : { startProxy: startProxyOn(proxy) }
const code = await web({ ...environment, listen, startCache, ...withProxy, builtDir: BUILT_DIR })
isEnding = true
await Promise.all([end(child), end(proxyProcess)])
await leave(code)

/**
 * Starts the cache service and resolves to its address; null: it did not start, and the reason was
 * logged. The server continues without it.
 */
async function startCache({
  host,
  port,
  stateDir,
  named,
}: Parameters<StartCache>[0]): Promise<string | null> {
  const free = await findPort(host, port)
  if (free === null) {
    log.note(`no free port for flasher-cache at or above ${port}`)
    return null
  }
  const flags = named.flatMap((path) => ['--config', path])
  const started = spawn(process.execPath, [PROGRAM, 'serve', ...flags], {
    // It logs to our stderr; it ends when the channel closes with us.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...environment.env,
      FLASHER_CACHE_HOST: host,
      FLASHER_CACHE_PORT: String(free),
      FLASHER_PATHS_STATE_DIR: stateDir,
    },
  })
  child = started
  started.once('error', (error) => log.note(`flasher-cache: ${renderError(error)}`))
  started.once('exit', () => {
    if (!isEnding && !environment.signal.aborted) {
      log.note('flasher-cache has stopped')
    }
  })
  const url = renderOrigin(host, free)
  if (await answers(url, started)) return url
  if (isRunning(started) && !environment.signal.aborted) {
    log.note(`flasher-cache does not answer at ${url}; the server runs without it`)
    started.kill('SIGTERM')
  }
  return null
}

async function findPort(host: string, first: number): Promise<number | null> {
  for (let port = first; port < first + MAX_PORTS && port < 65_536; port += 1) {
    const [probed] = await Promise.allSettled([probe(host, port)])
    if (probed.status === 'fulfilled') return port
  }
  return null
}

async function answers(url: string, started: ChildProcess): Promise<boolean> {
  const signal = AbortSignal.any([environment.signal, AbortSignal.timeout(START_MS)])
  while (!signal.aborted && isRunning(started)) {
    const answer = await fetch(`${url}/healthz`, { signal }).catch(() => null)
    if (answer?.ok === true) return true
    await pause(100)
  }
  return false
}

/** One that could not be started has no process ID. */
function isRunning({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null
}

async function end(started: ChildProcess | null): Promise<void> {
  if (started === null || !isRunning(started)) return
  const ended = once(started, 'exit')
  // The proxy may be root's, whom we may not signal: it ends when its input does.
  if (started.stdin === null) started.kill('SIGTERM')
  else started.stdin.end()
  await ended
}

function isFlag(word: string): boolean {
  return word === '--proxy' || word.startsWith('--proxy=')
}

/** `--proxy` or `--proxy=192.0.2.0/24`; the rest is the server's. Null: it was not given. */
function takeProxyFlag(words: readonly string[]) {
  const given = words.filter(isFlag).at(-1)
  return {
    proxy: given === undefined ? null : given.slice('--proxy='.length),
    argv: words.filter((word) => !isFlag(word)),
  }
}

/** As root, by sudo where we are not. */
function startProxyOn(given: string): NonNullable<Environment['startProxy']> {
  return async ({ wishFolder, networks }) => {
    const isConfigured = given === '' && networks.length > 0
    const chosen = isConfigured ? networks : await chooseNetwork(given)
    if (chosen === null) return null
    // The same at the next start, which removes what a killed one left.
    const folder = `/run/flasher-proxy-${renderRevision(wishFolder)}`
    const words = ['run', `--wish=${wishFolder}`, `--folder=${folder}`, '--with-parent']
    const [program = '', ...args] = [
      ...(environment.isRoot ? [] : ['sudo']),
      process.execPath,
      PROXY_PROGRAM,
      ...words,
    ]
    if (!environment.isRoot) log.note('the DHCP proxy answers as root, so sudo asks')
    // sudo asks on the terminal itself.
    const started = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    proxyProcess = started
    started.stdin.on('error', () => {})
    started.once('error', (error) => log.note(`the DHCP proxy: ${renderError(error)}`))
    started.once('exit', () => {
      if (!isEnding && !environment.signal.aborted) log.note('the DHCP proxy has stopped')
    })
    const first = await Promise.race([
      once(started.stdout, 'data'),
      once(started, 'exit').catch(() => null),
    ])
    started.stdout.resume()
    if (first === null || !isRunning(started)) return null
    log.note(
      `the DHCP proxy starts for ${chosen.join(', ')}; the page DHCP shows whether it answers, and what it hears`,
    )
    return { folder, networks: isConfigured ? [] : chosen }
  }
}

/** Null: there is none to choose, and the reason was logged. */
async function chooseNetwork(given: string): Promise<readonly string[] | null> {
  const all = listProxyNetworks(listLanAddresses())
  if (given !== '') {
    const asked = given.split(',').map((one) => one.trim())
    const wrong = asked.find((one) => !all.some(({ name }) => name === one))
    if (wrong === undefined) return asked
    log.note(`--proxy: ${wrong} is no network of this host: ${namesOf(all)}`)
    return null
  }
  const [only] = all
  if (only === undefined) {
    log.note('--proxy: no network card of this host has an IPv4 address')
    return null
  }
  if (all.length === 1) return [only.name]
  if (process.stdin.isTTY !== true) {
    log.note(
      `--proxy: this host has several networks; name one with --proxy=NETWORK: ${namesOf(all)}`,
    )
    return null
  }
  const { default: select } = await import('@inquirer/select')
  const choices = all.map(({ name, device }) => ({ value: name, name: `${name} (${device})` }))
  const question = { message: 'Which network do machines boot from?', choices }
  // Left by Ctrl-C: the server ends, too, or goes on without the proxy.
  const answer = await select(question, { signal: environment.signal }).catch(() => null)
  return answer === null ? null : [answer]
}

function namesOf(all: ReturnType<typeof listProxyNetworks>): string {
  return all.map(({ name, device }) => `${name} (${device})`).join(', ')
}
