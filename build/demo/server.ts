/** Starts the machine server with its cache on loopback, as `pnpm start` does, and asks it as an operator would. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import type { ReleaseSite } from './live-source.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'

interface ServerOptions {
  readonly checkout: string
  readonly stateDir: string
  readonly log: string
  readonly port: number
  readonly cachePort: number
  readonly password: string
  readonly site: ReleaseSite | null
  /** Whether the image calls the server once it has booted. */
  readonly calls: boolean
}

export interface Server extends AsyncDisposable {
  /** The address without a slash at its end. */
  readonly url: string
  /** A JSON answer; rejects with the server's own words. */
  ask(path: string, body?: unknown, method?: string): Promise<unknown>
  /** Resolves when it has ended. */
  readonly ended: Promise<void>
}

const HOST = '127.0.0.1'

export async function startServer(options: ServerOptions, signal: AbortSignal): Promise<Server> {
  const { checkout, log, port, password } = options
  await using file = await open(log, 'w')
  // A process group of its own: Ctrl-C reaches it through us alone. The channel ends it with us,
  // however we end.
  const child = spawn(process.execPath, [join(checkout, 'runtime/bin/start.ts')], {
    stdio: ['ignore', file.fd, file.fd, 'ipc'],
    env: planEnvironment(process.env, options),
    detached: true,
  })
  const ended = once(child, 'exit').then(
    () => undefined,
    () => undefined,
  )
  let hasEnded = false
  ended.then(() => {
    hasEnded = true
  })
  await using undo = new AsyncDisposableStack()
  undo.defer(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const url = `http://${HOST}:${port}`
  while (!(await isUp(url))) {
    signal.throwIfAborted()
    if (hasEnded) throw new Error(`the server did not start:\n${await readTail(log)}`)
    await pause(100)
  }
  const cookie = await logIn(url, password)
  const held = undo.move()
  return {
    url,
    ended,
    ask: (path, body, method) => ask(`${url}${path}`, cookie, body, method),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** Nothing of an installation's own settings but what leads to the outside. */
function planEnvironment(
  env: NodeJS.ProcessEnv,
  { stateDir, port, cachePort, password, site, calls }: ServerOptions,
): NodeJS.ProcessEnv {
  const others = Object.entries(env).filter(
    ([name]) => !name.startsWith('FLASHER_') || name === 'FLASHER_CA_FILE',
  )
  return {
    ...Object.fromEntries(others),
    FLASHER_CONFIG_FILE: '/dev/null',
    FLASHER_PATHS_STATE_DIR: stateDir,
    FLASHER_SERVER_HOST: HOST,
    FLASHER_SERVER_PORT: String(port),
    FLASHER_CACHE_PORT: String(cachePort),
    FLASHER_ADMIN_PASSWORD: password,
    // The BMC of the machine listens there.
    FLASHER_POWER_NETWORKS: '127.0.0.0/8',
    FLASHER_PROOF_ENABLED: String(calls),
    ...(site === null
      ? {}
      : {
          FLASHER_RELEASES_BASE_URL: site.url,
          FLASHER_BOOT_RELEASE_REPO: site.repository,
          FLASHER_BOOT_RELEASE_TAG: site.tag,
        }),
  }
}

const isUp = async (url: string): Promise<boolean> =>
  (await fetch(`${url}/healthz`).catch(() => null))?.ok === true

/** The session's cookie. */
async function logIn(url: string, password: string): Promise<string> {
  const answer = await fetch(`${url}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password }),
    redirect: 'manual',
  })
  const [cookie = ''] = answer.headers.getSetCookie()
  if (answer.status !== 303 || cookie === '') {
    throw new Error(`the server refused the password of this demo (status ${answer.status})`)
  }
  return cookie.split(';')[0] ?? ''
}

async function ask(
  url: string,
  cookie: string,
  body?: unknown,
  method = body === undefined ? 'GET' : 'POST',
): Promise<unknown> {
  const answer = await fetch(url, {
    method,
    headers: { cookie, 'content-type': 'application/json' },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (answer.status >= 400) throw new Error(`${method} ${url}: ${answer.status} ${text}`)
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  return isJson ? parseJson(text) : null
}

export async function readTail(log: string, lines = 10): Promise<string> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return text.trimEnd().split('\n').slice(-lines).join('\n')
}
