/** Real servers as processes on one database: who leads, who stands by, and a login that holds on all of them. */
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createServerHome, login } from '../server/flasher-web.ts'
import { findPort } from '../http/ports.ts'
import { startFlasher } from '../terminal/flasher.ts'

const PROGRAM = fileURLToPath(new URL('../../../runtime/bin/flasher-web.mjs', import.meta.url))
export const PASSWORD = 'a password of the tests'
const SECRET = 'a-key-that-all-of-these-servers-have'

export type ClusterServer = Awaited<ReturnType<typeof startServer>>

/** `database`: as this server reaches it. What it writes goes with it at the end of the scope. */
export async function startServer(database: string, more: Readonly<Record<string, string>> = {}) {
  const home = await createServerHome()
  const port = Number(more['FLASHER_SERVER_PORT'] ?? (await findPort()))
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...home.env,
    FLASHER_SERVER_PORT: String(port),
    FLASHER_ADMIN_PASSWORD: PASSWORD,
    FLASHER_SERVER_SESSION_SECRET: SECRET,
    FLASHER_DATABASE_URL: database,
    ...more,
  }
  const start = () => startFlasher([], { program: PROGRAM, env })
  let started = start()
  return {
    home,
    port,
    url,
    process: () => started,
    kill: (signal: NodeJS.Signals) => started.child.kill(signal),
    leads: () => started.saw('Pages:'),
    standsBy: () => started.saw('standing by'),
    /** Begins again on the same state. */
    restart() {
      started = start()
    },
    async [Symbol.asyncDispose]() {
      started.child.kill('SIGCONT')
      started.child.kill('SIGTERM')
      await started.ended
      await home[Symbol.asyncDispose]()
    },
  }
}

/** Asks as an operator, by way of any of the servers. */
export async function askAs({ url }: Pick<ClusterServer, 'url'>) {
  const { cookie } = await login(url, PASSWORD)
  return (path: string, init: RequestInit = {}) =>
    fetch(`${url}${path}`, {
      ...init,
      headers: { cookie, 'content-type': 'application/json', ...init.headers },
    })
}

/** Asks again until it is so; fails after a while. */
export async function until<T>(
  ask: () => Promise<T | null | false>,
  milliseconds = 60_000,
): Promise<T> {
  const end = performance.now() + milliseconds
  for (;;) {
    const found = await ask().catch(() => null)
    if (found !== null && found !== false) return found
    if (performance.now() > end) throw new Error('it did not come to be so in time')
    await sleep(50)
  }
}

/** Puts a file of the live system where a server serves it. */
export async function addBootFile(server: ClusterServer, name: string, text: string) {
  await mkdir(server.home.at('state/boot'), { recursive: true })
  await writeFile(server.home.at(`state/boot/${name}`), text)
}

export const copyState = (from: ClusterServer, to: ClusterServer) =>
  cp(from.home.at('state'), to.home.at('state'), { recursive: true })
