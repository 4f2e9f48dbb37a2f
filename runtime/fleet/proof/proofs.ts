/** Waits for the first boot of systems that were flashed, looks for its signs, and keeps what is known of it with their runs. */
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { connect, isIPv4 } from 'node:net'
import type { Proof, Run } from '#engine/inventory/rules/run.ts'
import { findRun, listNewest, listWatched, saveRun } from '#fleet/run/run-rows.ts'
import type { Database } from '#fleet/state/database.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import type { Changes } from '#kit/host/changes.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Shell } from '#kit/host/shell.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import {
  createProof,
  decideCall,
  type HostKeys,
  isOldSystem,
  isOpen,
  joinKeys,
  type LastBoot,
  mayProbe,
  nextProof,
  parseNeighbours,
  type Sign,
} from './rules/proof.ts'

export interface ProofsDependencies {
  readonly database: Database
  readonly changes: Changes
  readonly log: { error(message: string): void }
  /** When the seed token was made with which the machine fetched its newest configuration; null: none. */
  findCall(mac: Run['mac']): string | null
  now(): Date
  /** `port` of SSH; 0 or absent: it is not looked at. */
  settings(): { readonly enabled: boolean; readonly limit: number; readonly port?: number }
  /** Milliseconds of a clock that nobody sets. */
  elapsed(): number
  /** Looks whether machines' network cards answer at their addresses; what cannot be seen from here is left out. */
  findAnswers?(macs: readonly Run['mac'][]): Promise<ReadonlyMap<string, boolean>>
  /** Absent: keys are not read. */
  readKeys?(mac: Run['mac']): Promise<HostKeys>
}

/** Machines tell their end to a server that is away for ten minutes. */
const AGAIN_MS = 15 * 60_000
const wroteSystem = ({ result, mode }: Run): boolean => result === 'done' && mode !== 'capture'
/** Whether it ended lately, and nobody has waited for its system yet. */
const isFresh = ({ proof, ended_at, updated_at }: Run, at: Date): boolean =>
  proof === null && at.getTime() - epochOf(ended_at ?? updated_at) <= AGAIN_MS

const SWEEP_MS = 1000
const LOOK_MS = 5000

export type Proofs = ReturnType<typeof createProofs>

export function createProofs(given: ProofsDependencies) {
  const { database, changes, settings, findCall, now, elapsed, log } = given
  const { current, count, keep, save, take, onEnd } = createWatches(given)

  const signs = createSigns(given, { current, take })

  async function sweep(): Promise<void> {
    const at = elapsed()
    const over = [...current().values()].filter(({ endsAt }) => endsAt <= at)
    await Promise.all(over.map((watch) => take(watch, { kind: 'limit' })))
  }
  /** A machine asked for its boot script. From memory, and nothing for machines that nobody waits for. */
  function takeBoot(mac: string, isToDisk: boolean): Promise<void> | undefined {
    signs.baselines.boot(mac, isToDisk)
    const watch = count() === 0 ? undefined : current().get(mac)
    return watch && take(watch, { kind: 'contact', isElsewhere: !isToDisk })
  }
  changes.listen(
    (change) => {
      if (change.topic !== 'boot') return
      takeBoot(change.mac, change.isToDisk)?.catch((error: unknown) => {
        log.error(`first boot of ${change.mac}: ${renderError(error)}`)
      })
    },
    ['boot'],
  )
  database.repeat(SWEEP_MS, sweep)
  database.repeat(LOOK_MS, signs.look)

  return {
    isEnabled: (): boolean => settings().enabled,
    /**
     * A run has ended: the first boot of what it wrote is awaited from now on. It may be said again: the
     * server may have been killed between storing the run and this.
     */
    async begin(run: Run): Promise<void> {
      const { enabled, limit } = settings()
      if (!enabled || !wroteSystem(run)) return
      const [newest, former = null] = listNewest(database.sql, run.mac, 2)
      // The word of an earlier run may come late: its system has been written over since.
      if (newest?.id !== run.id || !isFresh(newest, now())) return
      const known = current().get(run.mac)
      if (known?.run.id === run.id) return
      if (known !== undefined) await take(known, { kind: 'flash' })
      const callMadeAt = decideCall(findCall(run.mac), former)
      const keysBefore = await signs.baselines.take(run.mac)
      const proof = createProof(now().toISOString(), limit, callMadeAt, keysBefore)
      keep({ ...run, proof })
      await save(run, proof)
    },
    /** Its next flash began. */
    async leave(mac: Run['mac']): Promise<void> {
      signs.baselines.live(mac)
      const watch = current().get(mac)
      if (watch !== undefined) await take(watch, { kind: 'flash' })
    },
    /** It was given the order a moment ago. */
    order: signs.baselines.order,
    /** Resolves once the machine may be restarted for its order. */
    settle: signs.baselines.settle,
    /** A system called the address that was made at `issued` (ISO 8601). */
    async call(mac: string, issued: string): Promise<void> {
      const watch = current().get(mac)
      if (watch !== undefined) await take(watch, { kind: 'call', issued })
    },
    /** When the wait for this machine's newest system began (ISO 8601); null: nobody waits for it. */
    since: (mac: string): string | null => current().get(mac)?.run.proof.since ?? null,
    /** Ends waits that have lasted long enough; also runs every second. */
    sweep,
    /** Looks whether the machines answer; also runs every five seconds. */
    look: signs.look,
    onEnd,
    awaitEnd: createAwaiting(given),
  }
}

/** A machine begins no more runs than this of one order while somebody waits. */
const FEW = 8

/**
 * Makes what resolves with the run of an order once it is known what became of its system, or with null
 * where nobody waits for that or `signal` is aborted before.
 */
function createAwaiting({ database, changes }: ProofsDependencies) {
  return (mac: Run['mac'], order: string, signal: AbortSignal): Promise<Run | null> => {
    const { promise, resolve } = Promise.withResolvers<Run | null>()
    const check = () => {
      const run = listNewest(database.sql, mac, FEW).find((each) => each.order === order)
      if ((run?.proof ?? null) === null) resolve(null)
      else if (run?.proof?.state !== 'watching') resolve(run ?? null)
    }
    const leave = () => resolve(null)
    const stop = changes.listen((change) => {
      // A restore is announced as a change of the settings.
      if (change.topic === 'settings' || (change.topic === 'run' && change.mac === mac)) check()
    })
    signal.addEventListener('abort', leave, { once: true })
    check()
    if (signal.aborted) leave()
    return promise.finally(() => {
      stop()
      signal.removeEventListener('abort', leave)
    })
  }
}

/** A run whose system is awaited. */
export type ProvedRun = Run & { readonly proof: Proof }

interface Watch {
  run: ProvedRun
  /** When the wait is over, on the clock that nobody sets. */
  readonly endsAt: number
}

/** The runs whose new system is awaited: in memory, and with their runs on disk. */
function createWatches({ database, changes, now, elapsed }: ProofsDependencies) {
  const listeners: ((run: ProvedRun) => Promise<void>)[] = []
  const iso = () => now().toISOString()
  const watches = new Map<string, Watch>()
  let epoch: number | null = null

  /** Reads them anew when the file was replaced. */
  function current(): ReadonlyMap<string, Watch> {
    if (database.epoch() === epoch) return watches
    watches.clear()
    for (const run of listWatched(database.sql, iso())) keep(run)
    epoch = database.epoch()
    return watches
  }

  function keep({ proof, ...run }: Run): void {
    if (proof === null) return
    const left = Date.parse(proof.until) - now().getTime()
    watches.set(run.mac, { run: { ...run, proof }, endsAt: elapsed() + Math.max(0, left) })
  }

  /** The run may be written by its machine's last posts meanwhile, so it is read again. */
  async function save({ mac, id }: Run, proof: Proof): Promise<void> {
    await database.write((sql) => {
      const found = findRun(sql, mac, id)
      if (found !== null) saveRun(sql, { ...found.run, proof })
    })
    changes.announce({ topic: 'run', mac })
    changes.announce({ topic: 'machine', mac })
  }

  async function tell(run: ProvedRun): Promise<void> {
    await Promise.all(listeners.map((listener) => listener(run)))
  }

  async function take(watch: Watch, sign: Sign): Promise<void> {
    const { run } = watch
    const proof = nextProof(run.proof, sign, iso())
    if (proof !== run.proof) {
      const next = { ...run, proof }
      watch.run = next
      await save(run, proof).catch((error: unknown) => {
        // It is tried again at the next sign: nobody may take it for known before it is on disk.
        if (watch.run.proof === proof) watch.run = run
        throw error
      })
      if (proof.state !== run.proof.state) await tell(next)
    }
    const isOver = sign.kind === 'flash' || !isOpen(proof, iso())
    if (isOver && watches.get(run.mac) === watch) watches.delete(run.mac)
  }

  return {
    /** By machine: at most one each, that of its newest run. */
    current,
    /** How many there are in memory; asking costs nothing. */
    count: (): number => watches.size,
    keep,
    save,
    take,
    /** The listener is called with each run of which it became known what became of its system. */
    onEnd: (listener: (run: ProvedRun) => Promise<void>) => void listeners.push(listener),
  }
}

/** Machines whose keys are read at the same time. */
const AT_ONCE = 32

function createSigns(
  given: ProofsDependencies,
  { current, take }: Pick<ReturnType<typeof createWatches>, 'current' | 'take'>,
) {
  const { settings, elapsed } = given
  const isEnabled = () => settings().enabled && (settings().port ?? 0) > 0
  const inTurn = createQueue(AT_ONCE)

  /** Only where its own network card answers there: an address may be another machine's by now. */
  async function readOwnKeys(mac: Run['mac']): Promise<HostKeys> {
    const answers = await given.findAnswers?.([mac])
    return answers?.get(mac) === true ? ((await given.readKeys?.(mac)) ?? null) : null
  }

  async function probe(watch: Watch): Promise<void> {
    const keys = mayProbe(watch.run.proof) ? await given.readKeys?.(watch.run.mac) : null
    if (keys) await take(watch, { kind: 'ssh', keys })
  }

  async function lookNow(): Promise<void> {
    const watched = [...current().values()]
    const macs = watched.map(({ run }) => run.mac)
    const found = macs.length === 0 ? null : await given.findAnswers?.(macs)
    for (const watch of watched) {
      const answers = found?.get(watch.run.mac)
      if (answers !== undefined) await take(watch, { kind: 'network', answers })
    }
    if (!isEnabled()) return
    const there = watched.filter(({ run }) => found?.get(run.mac) === true)
    await Promise.all(there.map((watch) => inTurn(() => probe(watch))))
  }

  let looking: Promise<void> | null = null
  return {
    baselines: createBaselines(isEnabled, readOwnKeys, elapsed),
    /** One look at a time: many machines with a slow SSH take longer than the pause between two. */
    look: (): Promise<void> => (looking ??= lookNow().finally(() => (looking = null))),
  }
}

interface Baseline {
  readonly order: string
  readonly old: Promise<HostKeys>
  live: Promise<HostKeys>
}

const UNKNOWN = Promise.resolve(null)

/** Which SSH host keys machines had before their new system could run; in memory, for who is ordered to flash. */
function createBaselines(
  isEnabled: () => boolean,
  /** Null as well where it is not the machine that answers. */
  readKeys: (mac: Mac) => Promise<HostKeys>,
  elapsed: ProofsDependencies['elapsed'],
) {
  const inTurn = createQueue(AT_ONCE)
  const lastBoots = new Map<string, LastBoot>()
  const known = new Map<Mac, Baseline>()
  const look = (mac: Mac) => inTurn(() => readKeys(mac)).catch(() => null)

  return {
    /** It asked for its boot script, and was led there. */
    boot(mac: string, isToDisk: boolean): void {
      if (isEnabled()) lastBoots.set(mac, { isToDisk, at: elapsed() })
    },
    /** It was given an order a moment ago: the system that runs now is looked at, where that is the old one. */
    order(mac: Mac, order: string): void {
      if (!isEnabled() || known.get(mac)?.order === order) return
      const old = isOldSystem(lastBoots.get(mac), elapsed()) ? look(mac) : UNKNOWN
      known.set(mac, { order, old, live: UNKNOWN })
    },
    /** Resolves once what was there before the order has been seen: until then nobody may restart the machine. */
    async settle(mac: Mac): Promise<void> {
      await known.get(mac)?.old
    },
    /** Its live system began a run. */
    live(mac: Mac): void {
      const baseline = known.get(mac)
      if (baseline !== undefined) baseline.live = look(mac)
    },
    async take(mac: Mac): Promise<HostKeys> {
      const baseline = known.get(mac)
      known.delete(mac)
      return baseline === undefined ? null : joinKeys(await baseline.old, await baseline.live)
    },
  }
}

const TABLE = '/proc/net/arp'
/** Nobody listens there (discard): the kernel only looks for the neighbour. */
const PORT = 9
/** How long the kernel is given to ask, milliseconds. */
const ASK_MS = 1500

/** Lists the neighbours of this host, as `parseNeighbours` says; empty where they cannot be read. */
export async function listNeighbours(): Promise<ReadonlyMap<string, string | null>> {
  return parseNeighbours(await readFile(TABLE, 'latin1').catch(() => ''))
}

/** The same, after the kernel was made to look for these addresses. */
export async function askNeighbours(
  addresses: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const socket = createSocket('udp4')
  const { promise, resolve } = Promise.withResolvers<void>()
  // An address that cannot be reached is no neighbour, and shows as none.
  socket.on('error', () => undefined)
  const send = (address: string) =>
    new Promise<void>((done) => {
      socket.send(new Uint8Array(1), PORT, address, () => done())
    })
  await Promise.all(addresses.filter(isIPv4).map(send))
  setTimeout(resolve, ASK_MS).unref()
  await promise
  socket.close()
  return await listNeighbours()
}

/** Milliseconds for a connection, and then for the first words. */
const TALK_MS = 2000
const KEYS_MS = 10_000
const MAX_WORDS = 255

/** Resolves to their SHA-256; empty: no SSH is there; null: nobody can tell. */
export async function readHostKeys(
  { run, has }: Pick<Shell, 'run' | 'has'>,
  host: string,
  port: number,
): Promise<readonly string[] | null> {
  const words = await readWords(host, port)
  if (words === null) return null
  if (!words.startsWith('SSH-')) return []
  if (!(await has('ssh-keyscan'))) return null
  const argv = ['ssh-keyscan', '-T', '5', '-p', String(port), host]
  const { stdout } = await run(argv, { timeout: KEYS_MS })
  const keys = parseKeys(stdout)
  // An SSH whose keys could not be read may have any.
  return keys.length === 0 ? null : keys
}

/** The first words that it says by itself; empty: the port is closed; null: it says none in time. */
function readWords(host: string, port: number): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const socket = connect({ host, port, timeout: TALK_MS })
  socket.on('data', (bytes: Buffer) => resolve(bytes.toString('latin1', 0, MAX_WORDS)))
  socket.on('timeout', () => resolve(null))
  socket.on('end', () => resolve(null))
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    resolve(code === 'ECONNREFUSED' ? '' : null)
  })
  return promise.finally(() => socket.destroy())
}

/** Each line is the host, the kind of the key, and the key in base64. */
const parseKeys = (text: string): readonly string[] =>
  text.split('\n').flatMap((line) => {
    const [, key] = /^[^#\s]\S* (?:ssh|ecdsa)-\S+ ([A-Za-z0-9+/]+=*)$/.exec(line.trim()) ?? []
    return key === undefined ? [] : [createHash('sha256').update(key, 'base64').digest('hex')]
  })
