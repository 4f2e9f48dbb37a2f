/** A cache service on loopback, in this process or in one of its own, with a folder that goes with it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import * as http from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCacheServer } from '#cache/routes/server.ts'
import { createAssets } from '#kit/web/answers/assets.ts'
import { createImageCache, type ImageCache } from '#cache/store/image-cache.ts'
import { readLocalToken } from '#fleet/access/tokens.ts'
import { createCacheSessions } from '#fleet/access/owner-rows.ts'
import { createSecret } from '#kit/web/access/secret.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { createEntrance } from '#kit/web/http/entrance.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { LogSink } from '#kit/web/answers/caller.ts'
import { SCRATCH } from '../scratch.ts'
import { listen } from '../http/hostile-server.ts'
import { findPort } from '../http/ports.ts'

export interface Folder extends AsyncDisposable {
  readonly path: string
}

export async function makeFolder(): Promise<Folder> {
  const path = await mkdtemp(join(SCRATCH, 'flasher-cache-'))
  // What is counted at once may still be on its way to its file.
  const settings = { recursive: true, force: true, maxRetries: 20, retryDelay: 10 } as const
  return { path, [Symbol.asyncDispose]: () => rm(path, settings) }
}

export interface CacheOptions {
  readonly maxBytes?: number
  readonly settleMs?: number
  readonly checkpointBytes?: number
  /** Seconds; never where it is left out. */
  readonly upstreamSeconds?: number
  readonly now?: () => Date
  /** Milliseconds; the process's own clock where it is left out. */
  readonly elapsed?: () => number
  readonly log?: LogSink
  /** The address of the machine server; there is none where it is left out. */
  readonly serverUrl?: string
  /** The port of a server that shares its state; there is none where it is left out. */
  readonly portBeside?: number
  /** What opens buckets, as the environment says it; nothing does where it is left out. */
  readonly env?: Readonly<Record<string, string>>
  /** A bearer that people chose; none where it is left out. */
  readonly chosen?: string
  /** The `state.db` of the server whose state it shares; it has one of its own where it is left out. */
  readonly beside?: string
}

export const QUIET = { debug() {}, info() {}, warn() {}, error() {} }
export const TOKEN = 'a-token-of-the-tests'
export const PASSWORD = 'correct horse'

/** The cache without its HTTP; given back by who asked for it. */
export const openCache = (folder: string, options: CacheOptions = {}): Promise<ImageCache> =>
  createImageCache({
    folder,
    sources: createSources({ env: options.env ?? {}, retryMs: 1, stallMs: 5000 }),
    maxBytes: () => options.maxBytes ?? 0,
    upstreamSeconds: () => options.upstreamSeconds ?? Infinity,
    upstreamTickMs: 10,
    now: options.now ?? (() => new Date()),
    log: options.log ?? QUIET,
    ...(options.elapsed === undefined ? {} : { elapsed: options.elapsed }),
    settleMs: options.settleMs ?? 20,
    scanMs: 50,
    againMs: 1,
    ...(options.checkpointBytes === undefined ? {} : { checkpointBytes: options.checkpointBytes }),
  })

export interface ServedCache extends AsyncDisposable {
  readonly base: string
  readonly cache: ImageCache
  readonly routes: readonly Route[]
}

export async function serveCache(folder: string, options: CacheOptions = {}): Promise<ServedCache> {
  const cache = await openCache(folder, options)
  const secret = await createSecret({ path: join(folder, '.cache/secret'), configured: '' })
  const { app, routes } = createCacheServer({
    cache,
    secret,
    book: createCacheSessions({
      state: options.beside ?? join(folder, '.cache/no-state'),
      signedOut: join(folder, '.cache/signed-out'),
      now: () => new Date(),
    }),
    assets: await createAssets(),
    checkPassword: async (given) => given === PASSWORD,
    isOwnToken: (given) => given === TOKEN,
    isChosenToken: (given) => given === options.chosen,
    folder,
    serverUrl: () => options.serverUrl ?? '',
    portBeside: async () => options.portBeside ?? null,
    env: {},
    version: '1.2.3',
    now: options.now ?? (() => new Date()),
    elapsed: () => (options.now?.() ?? new Date()).getTime(),
    log: options.log ?? QUIET,
  })
  const server = http.createServer(createEntrance(app, QUIET))
  const port = await listen(server)
  return {
    base: `http://127.0.0.1:${port}`,
    cache,
    routes,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await cache[Symbol.asyncDispose]()
    },
  }
}

export interface CacheProcess extends AsyncDisposable {
  readonly base: string
  readonly token: string
  readonly pid: number
  /** What it said on both outputs. */
  said(): string
  kill(signal: NodeJS.Signals): Promise<number | null>
}

const CHECKOUT = new URL('../../..', import.meta.url).pathname

/** The real program of this checkout, or of another one, on a free port. */
export async function startCache(
  state: string,
  env: Readonly<Record<string, string>> = {},
  checkout = CHECKOUT,
): Promise<CacheProcess> {
  const port = Number(env['FLASHER_CACHE_PORT'] ?? (await findPort()))
  const child = spawn(process.execPath, [join(checkout, 'runtime/bin/flasher-cache.mjs')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...cacheEnv(state, port), ...env },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  const ended = once(child, 'exit').then(() => child.exitCode)
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    return ended
  }
  const base = `http://127.0.0.1:${port}`
  try {
    await until(async () => child.exitCode !== null || (await isUp(base)))
    const token = await readLocalToken(join(state, 'cache/.cache/token'))
    if (child.exitCode !== null || token === null) throw new Error(`it did not start: ${said}`)
    return {
      base,
      token,
      pid: child.pid ?? 0,
      said: () => said,
      kill,
      async [Symbol.asyncDispose]() {
        if (child.exitCode === null && child.signalCode === null) await kill('SIGKILL')
      },
    }
  } catch (thrown) {
    await kill('SIGKILL')
    throw thrown
  }
}

export const cacheEnv = (state: string, port: number) => ({
  FLASHER_PATHS_STATE_DIR: state,
  FLASHER_CACHE_HOST: '127.0.0.1',
  FLASHER_CACHE_PORT: String(port),
  FLASHER_CONFIG_FILE: '/dev/null',
  http_proxy: '',
  HTTP_PROXY: '',
})

async function isUp(base: string): Promise<boolean> {
  const answer = await fetch(`${base}/healthz`).catch(() => null)
  return answer?.ok === true
}

/** Waits until something is so, however long that takes within reason. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 12_000; tries += 1) {
    if (await isSo()) return
    await sleep(10)
  }
  throw new Error('it never came to be')
}

/** As the server's operator, or a program with the token. */
export const asOperator = { authorization: `Bearer ${TOKEN}` }

/** Adds an entry and downloads it to its end. */
export async function bring(cache: ImageCache, entry: object): Promise<string> {
  const added = await cache.add(entry)
  if (!added.ok) throw new Error(JSON.stringify(added.refusal))
  await (
    await cache.download(added.value.name, { force: false })
  )?.ended
  return added.value.name
}
