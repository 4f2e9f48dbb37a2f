/** The runs of all machines: what goes on in memory, every change of phase on disk at once. */
import { randomUUID } from 'node:crypto'
import { takeOne, type Bucket } from '../../core/foundation/bucket.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'
import {
  decideEnded,
  endRun,
  markStalled,
  nextRun,
  type RunEnd,
} from '../../core/machine/run-transition.ts'
import { createRun, type Progress, type Run, type RunOrigin } from '../../core/machine/run.ts'
import type { Database } from './database.ts'
import type { Feed } from '../host/feed.ts'
import { createRunLogs } from './run-logs.ts'
import { createLiveRuns, type Entry } from './running-runs.ts'
import { pruneRuns, pruneRunsOf, type RunRetention } from './run-pruning.ts'
import { countRuns, findNewest, listRuns, type NumberedRun, type RunCondition } from './run-rows.ts'

/** What became of a post. */
export interface RunUpdate {
  readonly run: Run
  readonly isNew: boolean
  /** Whether it is this post that ended it. */
  readonly hasEnded: boolean
  /** Whether anything but figures changed. */
  readonly isTurn: boolean
  /** The run of before, which nobody will end any more. */
  readonly lost: Run | null
}

export interface RunFilter extends RunCondition {
  /** Of those that go on, only the ones that were not heard of for a while, or only the others. */
  readonly stalled?: boolean
  /** 1 to 1000. */
  readonly limit: number
}

export interface Runs {
  /** The run of this machine that goes on, from memory. Another object after every change. */
  findLive(mac: string): Run | null
  /** All that go on, from memory. */
  listLive(): readonly Run[]
  /** Grows when runs changed without a word of their machines: stalled, or given up. */
  marks(): number
  /**
   * A machine's post. What is no mere figure is on disk before it resolves. Refused: this machine
   * begins runs faster than any could.
   */
  take(post: Progress, origin: RunOrigin): Promise<Result<RunUpdate, 'too-many'>>
  /**
   * A machine said that it is done, or failed, without naming a run: the one that goes on ends, or one
   * is made of the plan that it had. Null: nothing is known of any.
   */
  end(origin: RunOrigin, end: RunEnd): Promise<Pick<RunUpdate, 'run' | 'hasEnded'> | null>
  /** Its machine is gone, or does something else. Null: there was none that went on. */
  giveUp(mac: string, reason: string): Promise<Run | null>
  find(mac: string, id: string): Run | null
  /** Newest first. */
  list(filter: RunFilter): readonly NumberedRun[]
  /** All that the filter finds, however many pages they fill. */
  count(filter: Omit<RunFilter, 'limit'>): number
  /** False when there is no such run. At most the tail of `MAX_LOG_BYTES` is kept. */
  saveLog(mac: string, id: string, text: Uint8Array): Promise<boolean>
  findLog(mac: string, id: string): Promise<string | null>
  /** Told of each run that was given up because nothing was heard of it for a day. */
  onLost(listener: (run: Run) => Promise<void>): void
  /** Marks what was not heard of; happens by itself too. */
  sweep(): Promise<void>
  /** Removes what retention no longer keeps; happens by itself too. */
  prune(): Promise<number>
}

interface RunsOptions {
  readonly feed?: Feed
  retention?(): RunRetention
  /** Seconds without news after which a run is marked; 30 unless said. */
  patience?(): number
  now?(): Date
}

const KEPT: RunRetention = { count: 10_000, days: 730 }
const PATIENCE_SECONDS = 30
const SWEEP_MS = 1000
const PRUNE_MS = 3_600_000
const PRUNE_EVERY = 200
/** So long after its last word a run is given up. */
const GIVE_UP_MS = 24 * 3_600_000
/** What one machine may begin; a real one takes a minute to boot. */
const BEGINNINGS = { perMinute: 4, most: 20 }
const MAX_BUCKETS = 20_000
/** At most one of each machine goes on. */
const MAX_OPEN = 100_000

export function createRuns(database: Database, options: RunsOptions = {}): Runs {
  const { feed } = options
  const clock = () => (options.now?.() ?? new Date()).getTime()
  const iso = () => new Date(clock()).toISOString()
  const logs = createRunLogs(database)
  const live = createLiveRuns(database, clock)
  const listeners: ((run: Run) => Promise<void>)[] = []
  const buckets = new Map<string, Bucket>()
  let [marks, begun] = [0, 0]

  function mayBegin(mac: string): boolean {
    if (buckets.size > MAX_BUCKETS) buckets.clear()
    const next = takeOne(buckets.get(mac) ?? null, clock(), BEGINNINGS)
    if (next !== null) buckets.set(mac, next)
    return next !== null
  }

  async function go(entry: Entry, post: Progress): Promise<RunUpdate> {
    const before = entry.run
    entry.run = nextRun(before, post, iso())
    entry.heardAt = clock()
    feed?.announce({ topic: 'run', mac: before.mac })
    const { run } = entry
    await live.keep(entry)
    return { run, isNew: false, lost: null, ...compare(before, run) }
  }

  /** The run of before ends with it, in the same transaction. */
  async function begin(run: Run): Promise<Run | null> {
    const former = live.entries().get(run.mac)?.run ?? null
    const lost = former === null ? null : endRun(former, 'lost', SUPERSEDED, iso())
    const entry = { run, stored: null, heardAt: clock() }
    live.put(entry)
    feed?.announce({ topic: 'run', mac: run.mac })
    await live.store(entry, ...(lost === null ? [] : [lost]))
    await pruneRunsOf(database, run.mac)
    begun += 1
    if (begun % PRUNE_EVERY === 0) pruneLater()
    return lost === former ? null : lost
  }

  async function prune(): Promise<number> {
    const removed = await pruneRuns(database, { ...KEPT, ...options.retention?.() }, clock())
    await logs.prune()
    return removed
  }
  // Best effort, both: the next time comes.
  const pruneLater = () => void prune().catch(() => undefined)
  const sweepLater = () => void sweep().catch(() => undefined)

  async function sweep(): Promise<void> {
    const patience = (options.patience?.() ?? PATIENCE_SECONDS) * 1000
    const at = clock()
    const marked = [...live.entries().values()].filter((entry) => {
      const before = entry.run
      entry.run =
        at - Date.parse(before.updated_at) > GIVE_UP_MS
          ? endRun(before, 'lost', SILENT, iso())
          : markStalled(before, entry.heardAt, at, patience)
      return entry.run !== before
    })
    marks += marked.length
    for (const { run } of marked) {
      feed?.announce({ topic: 'machine', mac: run.mac })
      feed?.announce({ topic: 'run', mac: run.mac })
    }
    await Promise.all(
      marked.map(async (entry) => {
        const { run } = entry
        await live.store(entry)
        if (run.result === 'lost') await Promise.all(listeners.map((tell) => tell(run)))
      }),
    )
  }

  const timers = [
    setInterval(sweepLater, SWEEP_MS).unref(),
    setInterval(pruneLater, PRUNE_MS).unref(),
  ]
  database.onClosed(() => {
    for (const timer of timers) clearInterval(timer)
  })

  const renew = (each: NumberedRun): NumberedRun => {
    const present = live.entries().get(each.run.mac)?.run
    return present?.id === each.run.id ? { n: each.n, run: present } : each
  }

  const listOpen = (condition: RunCondition, stalled?: boolean): readonly NumberedRun[] =>
    listRuns(database.sql, { ...condition, open: true }, MAX_OPEN)
      .map(renew)
      .filter(({ run }) => stalled === undefined || run.stalled === stalled)

  return {
    findLive: (mac) => goesOn(live.entries().get(mac)?.run ?? null),
    listLive: () => [...live.entries().values()].flatMap(({ run }) => goesOn(run) ?? []),
    marks: () => marks,
    async take(post, origin) {
      const known = live.find(origin.mac, post.run)
      if (known !== null) return accept(await go(known, post))
      if (!mayBegin(origin.mac)) return refuse('too-many')
      const at = iso()
      const run = nextRun(createRun(post.run, origin, at), post, at)
      const lost = await begin(run)
      return accept({ run, isNew: true, hasEnded: run.result !== null, isTurn: true, lost })
    },
    async end(origin, end) {
      const { mac } = origin
      const open = live.entries().get(mac)
      const newest = open?.run ?? findNewest(database.sql, mac)?.run ?? null
      const at = iso()
      const before = decideEnded(newest, end, { id: `plan-${randomUUID()}`, origin }, at)
      if (before === null) return null
      const run = endRun(before, end.result, end.reason, at)
      if (before !== newest) await begin(run)
      else {
        const entry = open ?? { run, stored: before, heardAt: 0 }
        entry.run = run
        feed?.announce({ topic: 'run', mac })
        await live.keep(entry)
      }
      return { run, hasEnded: run.result !== before.result }
    },
    async giveUp(mac, reason) {
      const entry = live.entries().get(mac)
      if (entry === undefined || entry.run.result !== null) return null
      const lost = endRun(entry.run, 'lost', reason, iso())
      entry.run = lost
      await live.keep(entry)
      return lost
    },
    find: (mac, id) => live.find(mac, id)?.run ?? null,
    list({ stalled, limit, ...condition }) {
      const most = Math.min(Math.max(1, Math.trunc(limit)), 1000)
      if (condition.open !== true && stalled === undefined) {
        return listRuns(database.sql, condition, most).map(renew)
      }
      return listOpen(condition, stalled).slice(0, most)
    },
    count: ({ stalled, ...condition }) =>
      stalled === undefined
        ? countRuns(database.sql, condition)
        : listOpen(condition, stalled).length,
    async saveLog(mac, id, text) {
      if (live.find(mac, id) === null) return false
      await logs.save(mac, id, text, iso())
      const entry = live.find(mac, id)
      if (entry === null) return false
      entry.run = { ...entry.run, has_log: true }
      await live.store(entry)
      return true
    },
    findLog: logs.find,
    onLost: (listener) => void listeners.push(listener),
    sweep,
    prune,
  }
}

const SUPERSEDED = 'Nothing more was heard of it: the machine began anew.'
const SILENT = 'Nothing was heard of it for a day.'

const goesOn = (run: Run | null): Run | null => (run?.result === null ? run : null)

const compare = (before: Run, run: Run): Pick<RunUpdate, 'hasEnded' | 'isTurn'> => ({
  hasEnded: run.result !== null && run.result !== before.result,
  isTurn: run.phase !== before.phase || run.result !== before.result || before.stalled,
})
