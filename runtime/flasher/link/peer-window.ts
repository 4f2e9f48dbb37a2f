/** Reads an image through the neighbours of this machine, and hands it on to those behind it, by an nginx of its own. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  access,
  chown,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  statfs,
  writeFile,
  stat,
} from 'node:fs/promises'
import { join } from 'node:path'
import { PEER_PORT } from '#appliance/contract.ts'
import type { FlashEvent } from '#engine/flash/rules/flash-plan.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import { linger, settle, untilAborted } from '#kit/host/watch.ts'
import {
  decideWindow,
  NeighboursSchema,
  parseOrigin,
  readShares,
  renameShares,
  renderPeerConfig,
  renderPeerPath,
  type Neighbours,
  PIECE_BYTES,
} from './rules/peer-config.ts'
import type { ServerClient } from './server-client.ts'

interface PeerWindowOptions {
  /** The image at its cache, the source of the chain. */
  readonly location: string
  readonly sha256: string
  readonly client: Pick<ServerClient, 'askPeers'>
  readonly env: Environment
  readonly signal: AbortSignal
  readonly places?: PeerPaths
}

/** Absent: the places of a live system. */
export interface PeerPaths {
  readonly nginx?: string
  /** A file system in memory. */
  readonly memory?: string
  readonly meminfo?: string
  /** The flash reads at the first of these addresses. */
  readonly listen?: readonly string[]
}

export interface PeerWindow extends AsyncDisposable {
  /** Asked before all other places of the image. */
  readonly source: string
  /** Puts neighbours' own names into an event. */
  rename(event: FlashEvent): FlashEvent
}

/** The flash waits for this answer; after that it begins without neighbours. */
const ANSWER_MS = 3000
const READY_MS = 3000
const LOOK_MS = 20
const COUNT_MS = 1000
/** `nobody`, which owns nothing. */
const NOBODY = 65_534

/** Null: it does not work, and the image is at its other places. Never rejects. */
export async function openPeerWindow(options: PeerWindowOptions): Promise<PeerWindow | null> {
  try {
    return await tryOpen(options)
  } catch {
    return null
  }
}

async function tryOpen(options: PeerWindowOptions): Promise<PeerWindow | null> {
  const { location, places = {}, env } = options
  const { nginx = '/usr/sbin/nginx', memory = '/dev/shm', meminfo = '/proc/meminfo' } = places
  await removeLeftBehind(memory)
  const origin = parseOrigin(location)
  const shell = createShell({ env })
  if (origin === null || !(await shell.has(nginx))) return null
  const { bavail, bsize } = await statfs(memory)
  const available = parseAvailable(await readFile(meminfo, 'utf8'))
  const windowBytes = decideWindow({ available, free: bavail * bsize })
  const asking = createAsking(options, windowBytes ?? 0)
  const late = AbortSignal.any([options.signal, AbortSignal.timeout(ANSWER_MS)])
  const neighbours = await untilAborted(late, asking.ask(0))
  if (neighbours === null) return null
  if (windowBytes === null) return createLeaf(neighbours)
  const folder = await mkdtemp(join(memory, `${FOLDER}${process.pid}-`))
  const given = { folder, origin, windowBytes, listen: places.listen, nginx }
  return await startWindow(options, { ...given, neighbours, asking, shell })
}

const FOLDER = 'flasher-peers-'

/** A killed process could not remove its folder. Best effort. */
async function removeLeftBehind(memory: string): Promise<void> {
  for (const name of await readdir(memory).catch(() => [])) {
    const [, pid] = name.startsWith(FOLDER) ? (/-(\d+)-[^-]+$/.exec(name) ?? []) : []
    if (pid === undefined || (await isThere(join('/proc', pid)))) continue
    await rm(join(memory, name), { recursive: true, force: true }).catch(() => undefined)
  }
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Bytes that programs can have without swapping, as the kernel estimates. */
const parseAvailable = (meminfo: string): number =>
  Number(/^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1] ?? 0) * 1024

function createAsking({ client, sha256 }: PeerWindowOptions, windowBytes: number) {
  const visit = randomUUID()
  return {
    /** Null: no neighbours, or no usable answer. */
    async ask(readBytes: number): Promise<Neighbours | null> {
      const said = { visit, sha256, read_bytes: readBytes, window_bytes: windowBytes }
      const answer = await client.askPeers({ ...said, serves: windowBytes > 0 })
      const parsed = answer.ok ? NeighboursSchema.safeParse(answer.value) : null
      return parsed?.success === true ? parsed.data : null
    },
  }
}

/** With little memory a machine reads from its neighbour, and keeps nothing for others. */
function createLeaf(neighbours: Neighbours): PeerWindow | null {
  const [nearest] = neighbours.before
  if (nearest === undefined) return null
  const source = `http://${nearest}${renderPeerPath(neighbours)}`
  return { source, rename: (event) => event, [Symbol.asyncDispose]: async () => {} }
}

interface WindowDependencies {
  readonly folder: string
  readonly origin: URL
  readonly windowBytes: number
  readonly listen: readonly string[] | undefined
  readonly nginx: string
  readonly neighbours: Neighbours
  readonly asking: ReturnType<typeof createAsking>
  readonly shell: ReturnType<typeof createShell>
}

async function startWindow(
  { signal: ending }: PeerWindowOptions,
  parts: WindowDependencies,
): Promise<PeerWindow | null> {
  const { folder, origin, windowBytes, listen, nginx, neighbours, shell } = parts
  await using started = new AsyncDisposableStack()
  started.defer(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'nginx.conf')
  const hasIpv6 = await readFile('/proc/net/if_inet6', 'utf8').then(Boolean, () => false)
  const write = (now: Neighbours) =>
    writeFile(path, renderPeerConfig({ ...parts, ...now, hasIpv6, ...(listen ? { listen } : {}) }))
  await write(neighbours)
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(folder, NOBODY, NOBODY)
  const identity = `--reuid=${NOBODY} --regid=${NOBODY} --clear-groups --no-new-privs`.split(' ')
  // nginx ends with this process, however that ends.
  const tie = ['--pdeathsig', 'TERM']
  const command = [nginx, '-p', folder, '-e', join(folder, 'error.log'), '-c', path]
  const child = shell.pipe(isRoot ? ['setpriv', ...identity, ...tie, ...command] : command)
  const closing = new AbortController()
  // The reports to the server end with nginx.
  const end = () => closing.abort()
  const ended = once(child, 'exit').then(end, end)
  child.on('error', () => {})
  child.stdout.resume()
  child.stderr.resume()
  started.defer(async () => {
    child.kill('SIGTERM')
    if (!(await settle(ended, READY_MS))) child.kill('SIGKILL')
  })
  const signal = AbortSignal.any([ending, closing.signal])
  if (!(await isListening(join(folder, 'pid'), signal))) return null
  const shares = createShares(join(folder, 'shares.log'), origin.origin)
  const following = follow({ ...parts, shares, signal }, async (now) => {
    await write(now)
    child.kill('SIGHUP')
  })
  const keeping = createWindowKeeper(join(folder, 'window'), windowBytes).watch(signal)
  started.defer(async () => {
    closing.abort()
    await Promise.all([following, keeping])
  })
  const kept = started.move()
  const own = `http://${listen?.[0] ?? '127.0.0.1'}:${PEER_PORT}`
  return {
    source: `${own}${renderPeerPath(neighbours)}`,
    rename: (event) =>
      event.event === 'writing' && event.sources !== undefined && event.sources !== null
        ? { ...event, sources: renameShares(event.sources, own, shares.counts()) }
        : event,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** nginx writes the file once it listens; never, where another program has the port. */
async function isListening(pidFile: string, signal: AbortSignal): Promise<boolean> {
  for (const end = performance.now() + READY_MS; performance.now() < end && !signal.aborted;) {
    if (await isThere(pidFile)) return true
    await linger(LOOK_MS, signal)
  }
  return false
}

/** Never rejects. A neighbour that left is skipped early: the server is asked repeatedly. */
async function follow(
  {
    asking,
    shares,
    signal,
    neighbours,
  }: Pick<WindowDependencies, 'asking' | 'neighbours'> & {
    readonly shares: ReturnType<typeof createShares>
    readonly signal: AbortSignal
  },
  change: (now: Neighbours) => Promise<void>,
): Promise<void> {
  let known = neighbours
  for (let asked = performance.now(); !signal.aborted;) {
    await linger(COUNT_MS, signal)
    await shares.read()
    if (signal.aborted || performance.now() - asked < known.ask_seconds * 1000) continue
    asked = performance.now()
    const now = await untilAborted(signal, asking.ask(shares.total())).catch(() => null)
    if (now === null || isSame(now, known) || now.key !== known.key) continue
    // Where memory is full, nginx keeps the neighbours that it knows until the next answer.
    await change(now).then(
      () => (known = now),
      () => undefined,
    )
  }
}

const isSame = (a: Neighbours, b: Neighbours) =>
  a.before.join() === b.before.join() && a.hops === b.hops && a.allow === b.allow

const MAX_LOG_BYTES = 1 << 20

/** Counts bytes by neighbour, from where the log was last read. */
function createShares(path: string, origin: string) {
  const counts = new Map<string, number>()
  let at = 0
  return {
    counts: (): ReadonlyMap<string, number> => counts,
    total: () => [...counts.values()].reduce((sum, bytes) => sum + bytes, 0),
    async read(): Promise<void> {
      try {
        await using file = await open(path)
        const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_LOG_BYTES), {
          position: at,
        })
        const text = buffer.toString('latin1', 0, bytesRead)
        const whole = text.lastIndexOf('\n') + 1
        at += whole
        for (const [name, bytes] of readShares(text.slice(0, whole), origin)) {
          counts.set(name, (counts.get(name) ?? 0) + bytes)
        }
      } catch {
        // Nothing was handed on yet, or the flash has ended.
      }
    },
  }
}

/** In this time 1 GbE brings some 25 MiB. */
const KEEP_EVERY_MS = 200

/** nginx's name for a complete piece. */
const PIECE = /^[0-9a-f]{32}$/

/** Removes the oldest pieces beyond `windowBytes`. */
export function createWindowKeeper(folder: string, windowBytes: number) {
  const most = Math.floor(windowBytes / PIECE_BYTES)
  /** In the order in which they came. */
  const known = new Set<string>()

  async function tidy(): Promise<void> {
    // No folder before the first piece, and none after the end.
    const there = new Set(await readdir(folder).catch(() => []))
    for (const name of known) if (!there.has(name)) known.delete(name)
    const fresh = [...there].filter((name) => PIECE.test(name) && !known.has(name))
    for (const name of await sortByAge(folder, fresh)) known.add(name)
    const surplus = [...known].slice(0, Math.max(0, known.size - most))
    // nginx fetches a missing piece again.
    await Promise.all(surplus.map((name) => rm(join(folder, name)).catch(() => undefined)))
  }

  return {
    tidy,
    async watch(signal: AbortSignal): Promise<void> {
      for (; !signal.aborted; await linger(KEEP_EVERY_MS, signal)) await tidy()
    },
  }
}

async function sortByAge(folder: string, names: readonly string[]): Promise<readonly string[]> {
  const ages = names.map(async (name) => {
    const found = await stat(join(folder, name)).catch(() => null)
    return { name, at: found?.ctimeMs ?? 0 }
  })
  return (await Promise.all(ages)).toSorted((a, b) => a.at - b.at).map(({ name }) => name)
}
