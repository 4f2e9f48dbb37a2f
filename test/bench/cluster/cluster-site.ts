/** What a storm happens to: PostgreSQL, servers that share it, caches, and the wires between them. */
import { createHash, randomBytes } from 'node:crypto'
import { copyFile, mkdir, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { basename } from 'node:path'
import { openWire, startPostgres } from '#test/support/cluster/postgres.ts'
import { askAs, PASSWORD, until } from '#test/support/cluster/servers.ts'
import type { ProcessorTimes } from '#test/support/processor-times.ts'
import { openWireTo } from '#test/support/cluster/wire.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { HOST_SEEN_BY_GUESTS } from '#test/support/vm/ipxe.ts'
import { SMALL_FILES } from '../server/server-fixture.ts'
import { mountDisk } from '#test/support/cluster/small-disk.ts'
import type { GuestMedia } from './cluster-media.ts'
import { keepRunning, type Role } from './cluster-process.ts'

export type Site = Awaited<ReturnType<typeof openSite>>
export type SiteServer = Site['servers'][number]

const DATABASE = 'fleet'
/** This is what a server needs beside the live system. */
const STATE_MIB = 96
const MIB = 2 ** 20
const LOOPBACK = '127.0.0.1'
const DATABASE_MIB = 320
const IMAGES = ['system-a.img', 'system-b.img'] as const
const KEY = 'a key of the servers of a benchmark, shared'

interface SiteOptions {
  readonly servers: number
  readonly caches: number
  /** Bytes of each of the two images. */
  readonly imageBytes: number
  /** How many machines may flash at the same time. */
  readonly atOnce: number
  /** Null: there are no machines in QEMU. */
  readonly media: GuestMedia | null
  /** This is called when a server's role changes. */
  onRole(server: number, role: Role, times: ProcessorTimes): void
}

/** Resolves when one server leads, the others stand by, and the images are there. */
export async function openSite(options: SiteOptions) {
  const opened = new AsyncDisposableStack()
  try {
    const database = await openDatabase(opened)
    const { media } = options
    const images = [...(await makeImages(options.imageBytes)), ...(media?.images ?? [])]
    const host = media === null ? LOOPBACK : HOST_SEEN_BY_GUESTS
    const caches = await openCaches(opened, { count: options.caches, images, host })
    const ports = await Promise.all(Array.from({ length: options.servers }, findPort))
    const servers: Awaited<ReturnType<typeof openServer>>[] = []
    for (const [at, port] of ports.entries()) {
      const server = await openServer(opened, {
        at,
        port,
        host,
        database,
        boot: media?.boot ?? null,
        env: { ...settingsOf(options, host, ports), ...caches.settings },
        onRole: (role, times) => options.onRole(at, role, times),
      })
      servers.push(server)
      await until(async () => ['leads', 'stands-by'].includes(server.process.role()), 60_000)
    }
    const urls = servers.map(({ url }) => url)
    const refs = await awaitImages(urls[0] ?? '', images)
    return {
      database,
      servers,
      urls,
      caches: caches.processes,
      images: refs.slice(0, IMAGES.length),
      /** Those of the machines in QEMU. */
      disks: refs.slice(IMAGES.length),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    }
  } catch (thrown) {
    await opened.disposeAsync()
    throw thrown
  }
}

const settingsOf = ({ atOnce }: SiteOptions, host: string, ports: readonly number[]) => ({
  FLASHER_ADMIN_PASSWORD: PASSWORD,
  FLASHER_SERVER_SESSION_SECRET: 'a-key-that-all-of-these-servers-have',
  FLASHER_DATABASE_KEY: KEY,
  FLASHER_PXE_SERVERS: ports.map((port) => `http://${host}:${port}`).join(','),
  FLASHER_PXE_MAX_FLASHES: String(atOnce),
  FLASHER_PXE_DISCOVERY_PER_MINUTE: '1000000',
  // A machine that boots again and again here does so because of the storm.
  FLASHER_PXE_LOOP_LIMIT: '1000',
  FLASHER_PXE_TOKENS: 'prefer',
})

/** Its tables lie on a small disk, its log of writes elsewhere: a full disk is an error, not its end. */
async function openDatabase(opened: AsyncDisposableStack) {
  const postgres = opened.use(await startPostgres())
  const folder = `${postgres.dir}/space`
  const disk = opened.use(await mountDisk(folder, DATABASE_MIB, 'postgres'))
  // The disk is let go after PostgreSQL has ended.
  opened.defer(() => postgres.stop('SIGQUIT'))
  await postgres.query('postgres', `CREATE TABLESPACE small LOCATION '${folder}'`)
  await postgres.query('postgres', `CREATE DATABASE ${DATABASE} TABLESPACE small`)
  return { ...postgres, disk, ask: (text: string) => postgres.query(DATABASE, text) }
}

type SiteDatabase = Awaited<ReturnType<typeof openDatabase>>

interface SiteImage {
  readonly name: string
  readonly sha256: string
  readonly content: Buffer
}

async function makeImages(bytes: number): Promise<readonly SiteImage[]> {
  return IMAGES.map((name) => {
    const content = randomBytes(bytes)
    return { name, content, sha256: createHash('sha256').update(content).digest('hex') }
  })
}

interface CacheOptions {
  readonly count: number
  readonly images: readonly SiteImage[]
  readonly host: string
}

/** Each of them has all images. */
async function openCaches(opened: AsyncDisposableStack, { count, images, host }: CacheOptions) {
  const urls: string[] = []
  const processes: ReturnType<typeof keepRunning>[] = []
  for (let at = 0; at < count; at += 1) {
    const home = opened.use(await createServerHome())
    const port = await findPort()
    await mkdir(home.at('state/cache'), { recursive: true })
    for (const { name, content } of images) {
      await writeFile(home.at(`state/cache/${name}`), content)
    }
    const env = {
      ...home.env,
      FLASHER_CACHE_HOST: listenOf(host),
      FLASHER_CACHE_PORT: String(port),
      FLASHER_ADMIN_PASSWORD: PASSWORD,
    }
    processes.push(opened.use(keepRunning({ name: 'flasher-cache', env })))
    const url = `http://${host}:${port}`
    urls.push(url)
    await until(async () => (await fetch(`${url}/healthz`)).ok, 60_000)
  }
  const [first = '', ...others] = urls
  const settings = {
    FLASHER_WITHCACHE_URL: first,
    FLASHER_SOURCES_CACHES: others.join(','),
  }
  return { processes, settings }
}

/** QEMU comes to the host's loopback address for guests that ask for the other one. */
const listenOf = (host: string) => (host === LOOPBACK ? host : '0.0.0.0')

interface ServerOptions {
  readonly at: number
  readonly port: number
  /** This is the address by which machines reach it. */
  readonly host: string
  /** The files of the live system; null: files that only look like it. */
  readonly boot: readonly string[] | null
  readonly database: SiteDatabase
  readonly env: Readonly<Record<string, string>>
  onRole(role: Role, times: ProcessorTimes): void
}

async function openServer(opened: AsyncDisposableStack, options: ServerOptions) {
  const { port, host, database, boot, env, onRole } = options
  const home = opened.use(await createServerHome())
  const sizes = await Promise.all((boot ?? []).map(async (path) => (await stat(path)).size))
  const bootMib = Math.ceil(sizes.reduce((sum, size) => sum + size, 0) / MIB)
  const disk = opened.use(await mountDisk(home.at('state'), STATE_MIB + bootMib))
  await mkdir(home.at('state/boot'))
  for (const path of boot ?? []) await copyFile(path, home.at(`state/boot/${basename(path)}`))
  for (const name of boot === null ? SMALL_FILES : []) {
    await writeFile(home.at(`state/boot/${name}`), Buffer.alloc(4096, 7))
  }
  const toDatabase = opened.use(await openWire(database, DATABASE))
  // The others pass requests on by way of this one.
  const toServer = opened.use(await openWireTo(() => connect(port, '127.0.0.1')))
  const own = {
    ...home.env,
    ...env,
    FLASHER_SERVER_HOST: listenOf(host),
    FLASHER_SERVER_PORT: String(port),
    FLASHER_DATABASE_URL: toDatabase.url,
    FLASHER_DATABASE_OWN_URL: `http://127.0.0.1:${toServer.port}`,
  }
  const url = `http://${host}:${port}`
  const process = opened.use(keepRunning({ name: 'flasher-web', env: own, onRole }))
  return { url, process, disk, toDatabase, toServer }
}

/** Resolves to the images as the servers know them, once all have their digest. */
async function awaitImages(url: string, images: readonly SiteImage[]) {
  const ask = await until(() => askAs({ url }))
  return await until(async () => {
    const listed: unknown = await (await ask('/images')).json()
    if (!Array.isArray(listed)) return null
    const found = images.flatMap(({ name, sha256 }) =>
      listed.flatMap((each: { name?: string; ref?: string; sha_short?: string }) =>
        each.name === name && each.ref !== undefined && sha256.startsWith(each.sha_short ?? '-')
          ? [{ name, sha256, ref: each.ref }]
          : [],
      ),
    )
    return found.length === images.length ? found : null
  }, 120_000)
}
