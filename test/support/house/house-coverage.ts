/** Which files of a checkout are loaded and which really run, as V8's own coverage counts it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { createFolder, PASSWORD } from '#test/bench/server/server-fixture.ts'
import { macOf } from '#test/bench/server/server-wire.ts'
import { makeDiskImage } from '../disk/disk-images.ts'
import { createLoop } from '../disk/loop.ts'
import { findPort } from '../http/ports.ts'

const targets = z.array(z.object({ webSocketDebuggerUrl: z.string() }))
const answer = z.object({ id: z.number().optional(), result: z.unknown() })

/** The process that listens with `--inspect` on this port of the loopback. */
async function connectInspector(port: number) {
  const list = await fetch(`http://127.0.0.1:${port}/json/list`)
  const [target] = targets.parse(await list.json())
  if (target === undefined) throw new Error(`nothing is inspected on port ${port}`)
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  await once(socket, 'open')
  const waiting = new Map<number, (result: unknown) => void>()
  socket.addEventListener('message', ({ data }) => {
    const { id = 0, result } = answer.parse(JSON.parse(String(data)))
    waiting.get(id)?.(result)
    waiting.delete(id)
  })
  let lastId = 0
  return {
    call(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
      lastId += 1
      const asked = Promise.withResolvers<unknown>()
      waiting.set(lastId, asked.resolve)
      socket.send(JSON.stringify({ id: lastId, method, params }))
      return asked.promise
    },
    [Symbol.dispose]() {
      socket.close()
    },
  }
}

export interface Ran {
  /** Paths below the checkout; null: the program had been running before. */
  readonly loaded: readonly string[] | null
  /** Those of which a function was called: a file that only declares is loaded and does not run. */
  readonly run: readonly string[]
}

const coverage = z.object({
  result: z.array(
    z.object({
      url: z.string(),
      functions: z.array(
        z.object({
          ranges: z.array(z.object({ startOffset: z.number(), count: z.number() })),
        }),
      ),
    }),
  ),
})
export type Coverage = z.infer<typeof coverage>

/** A module's own text begins at 0; every function of it begins later. */
const hasRun = ({ functions }: Coverage['result'][number]) =>
  functions.some(({ ranges: [whole] }) => (whole?.startOffset ?? 0) > 0 && (whole?.count ?? 0) > 0)

function listFiles(checkout: string, taken: readonly Coverage[]) {
  const base = pathToFileURL(`${checkout}/`).href
  const ours = taken
    .flatMap(({ result }) => result)
    .filter(({ url }) => url.startsWith(`${base}runtime/`))
  const paths = (scripts: Coverage['result']) =>
    [...new Set(scripts.map(({ url }) => url.slice(base.length)))].toSorted()
  return { loaded: paths(ours), run: paths(ours.filter(hasRun)) }
}

/** Runs a program to its end, all that it forks included. */
async function runCovered(checkout: string, argv: readonly string[]): Promise<Ran> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-house-'))
  const child = spawn(argv[0] ?? '', argv.slice(1), {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...process.env, LANG: 'C.UTF-8', TERM: 'xterm', NODE_V8_COVERAGE: folder.path },
  })
  // Ctrl-C, once the first screen stands.
  if (argv[0] === 'script') setTimeout(() => child.stdin.write('\u0003'), 4000)
  await once(child, 'close')
  const texts = globSync('*.json', { cwd: folder.path }).map((name) =>
    readFileSync(join(folder.path, name), 'utf8'),
  )
  return listFiles(
    checkout,
    texts.map((text) => coverage.parse(JSON.parse(text))),
  )
}

const flasherOf = (checkout: string) => [process.execPath, `${checkout}/runtime/bin/flasher.mjs`]

/** What a start loads: `flasher --version` to its end, the wizard up to its first screen. */
export const measureStart = (checkout: string, what: 'version' | 'wizard'): Promise<Ran> =>
  runCovered(
    checkout,
    what === 'version'
      ? [...flasherOf(checkout), '--version']
      : ['script', '--quiet', '--command', `exec ${flasherOf(checkout).join(' ')}`, '/dev/null'],
  )

/** A flash of a packed image onto a loop device, read back. */
export async function measureFlash(checkout: string): Promise<Ran> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-house-'))
  const [image, packed] = [join(folder.path, 'disk.img'), join(folder.path, 'disk.img.zst')]
  writeFileSync(image, makeDiskImage(32 * 2 ** 20))
  await runCovered(checkout, [...flasherOf(checkout), 'pack', image, '--output', packed])
  await using loop = await createLoop({ megabytes: 64 })
  const order = ['flash', '--image', packed, '--target', loop.device, '--yes']
  return await runCovered(checkout, [...flasherOf(checkout), ...order])
}

const CONTACTS = 5

/** What runs in each of some contacts of a machine that the server knows, after others of its kind. */
export async function measureContact(checkout: string, what: 'pxe' | 'plan'): Promise<Ran> {
  await using folder = await createFolder(4)
  const [port, inspect] = [await findPort(), await findPort()]
  const server = `http://127.0.0.1:${port}`
  const child = spawn(
    process.execPath,
    [`--inspect=127.0.0.1:${inspect}`, `${checkout}/runtime/bin/flasher-web.mjs`],
    {
      stdio: 'ignore',
      env: {
        ...process.env,
        FLASHER_LOG_LEVEL: 'warn',
        FLASHER_SERVER_HOST: '127.0.0.1',
        FLASHER_SERVER_PORT: String(port),
        FLASHER_PATHS_STATE_DIR: folder.path,
        FLASHER_WITHCACHE_URL: folder.cacheUrl,
        FLASHER_ADMIN_PASSWORD: PASSWORD,
      },
    },
  )
  try {
    const path = `/pxe/${macOf(1)}${what === 'plan' ? '/plan' : ''}`
    await awaitAnswer(child, `${server}${path}`)
    using inspector = await connectInspector(inspect)
    await inspector.call('Profiler.enable')
    await inspector.call('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
    await (await fetch(`${server}${path}`)).text()
    // What only runs once, and what was started beside it, is over; taking the counts resets them.
    await sleep(500)
    await inspector.call('Profiler.takePreciseCoverage')
    const contacts: (readonly string[])[] = []
    for (let contact = 0; contact < CONTACTS; contact += 1) {
      await (await fetch(`${server}${path}`)).text()
      const taken = coverage.parse(await inspector.call('Profiler.takePreciseCoverage'))
      contacts.push(listFiles(checkout, [taken]).run)
      await sleep(700)
    }
    // Timers of the server and connections that end run in some of them.
    const [first = [], ...others] = contacts
    return { loaded: null, run: first.filter((file) => others.every((run) => run.includes(file))) }
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'close')
  }
}

async function awaitAnswer(child: ChildProcess, url: string): Promise<void> {
  for (let turn = 0; turn < 300; turn += 1) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`)
    const response = await fetch(url).catch(() => null)
    if (response?.ok === true) return
    await sleep(100)
  }
  throw new Error('the server did not come up')
}
