/** `pnpm start`: runs the machine server, and the cache service beside it unless another one is configured. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { renderError } from '#kit/foundation/fault.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import { decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { renderOrigin } from '#cache/commands/configuration.ts'
import { loadLine } from './line.ts'
import { listen, probe } from './listen.ts'
import { leave, openProcess } from './open-process.ts'

/** Where `pnpm build:images` leaves what it makes. */
const BUILT_DIR = fileURLToPath(new URL('../../dist', import.meta.url))
const PROGRAM = fileURLToPath(new URL('flasher-cache.mjs', import.meta.url))
/** How many ports from the configured one on are tried. */
const MAX_PORTS = 20
/** A small board may take long at its first start; a cache that fails ends at once. */
const START_MS = 60_000

const environment = openProcess('flasher-web')
const { stderr, env } = environment
const log = createLog({
  program: 'flasher-web',
  stderr,
  style: decideTerminalStyle(env, stderr.isTTY),
})
let child: ChildProcess | null = null
/** The server has ended; the cache ends with it. */
let isEnding = false

const { web } = await loadLine(environment)
type StartCache = NonNullable<Parameters<typeof web>[0]['startCache']>
const code = await web({ ...environment, listen, startCache, builtDir: BUILT_DIR })
await endCache()
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

async function endCache(): Promise<void> {
  isEnding = true
  const started = child
  if (started === null || !isRunning(started)) return
  const ended = once(started, 'exit')
  started.kill('SIGTERM')
  await ended
}
