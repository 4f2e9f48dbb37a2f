/** The runs of all machines: current ones in memory, every change of phase on disk at once. */
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { MAX_LOG_BYTES, type Run } from '#engine/inventory/rules/run.ts'
import type { Database } from '#fleet/state/database.ts'
import { keepRead } from '#fleet/state/kept-rows.ts'
import { HOUR_MS, pruneRows, type Retention } from '#fleet/state/pruning.ts'
import { readNumber, readText, readTextOrNull, type Row } from '#fleet/state/sqlite.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { EndedFlash, LastWritten } from './rules/waterfall.ts'
import { endRun, markStalled, type RunColumn, type RunSortRow } from './rules/run-record.ts'
import { createRunningRuns, createRunPosts, goesOn, type RunningRuns } from './running-runs.ts'
import {
  countRuns,
  deleteRun,
  listRuns,
  listSortRows,
  MAX_OPEN,
  type NumberedRun,
  readRuns,
  type RunCondition,
} from './run-rows.ts'

export interface RunFilter extends RunCondition {
  /** True: only stalled open runs; false: only the others. */
  readonly stalled?: boolean | undefined
  /** 1 to 1000. */
  readonly limit: number
}

interface RunsOptions {
  readonly changes?: Changes
  retention?(): Retention
  /** Seconds without a post; default 30. */
  patience?(): number
  now?(): Date
  /** Milliseconds of a steady clock. */
  elapsed?(): number
}

const KEPT: Retention = { count: 10_000, days: 730 }
/** Open runs are never removed. */
const TABLE = { table: 'runs', number: 'n', time: 'began', condition: 'result IS NOT NULL' }
const PATIENCE_SECONDS = 30
const SWEEP_MS = 1000
/** Besides each hour. */
const PRUNE_EVERY = 200

export type Runs = ReturnType<typeof createRuns>

/** Looks for stalled runs every second; removes old ones every hour. */
export function createRuns(database: Database, options: RunsOptions = {}) {
  const { changes, patience = () => PATIENCE_SECONDS, elapsed = () => performance.now() } = options
  const now = () => (options.now?.() ?? new Date()).getTime()
  const logs = createRunLogs(database)
  const written = createLastWrites(database)
  const running = createRunningRuns(database, changes, elapsed, (run) => written.note(run))
  let begun = 0

  async function prune(): Promise<number> {
    const removed = await pruneRows(database, TABLE, { ...KEPT, ...options.retention?.() }, now())
    await logs.prune()
    return removed
  }
  async function onBegun(mac: string): Promise<void> {
    await pruneRunsOf(database, mac)
    begun += 1
    // Best effort: tried again each hour.
    if (begun % PRUNE_EVERY === 0) prune().catch(() => undefined)
  }
  const watch = createRunWatch({ running, changes, patience, now, elapsed })
  database.repeat(SWEEP_MS, watch.sweep)
  database.repeat(HOUR_MS, prune)

  return {
    ...createRunPosts({ database, running, now, elapsed, onBegun }),
    ...createRunLists(database, running),
    ...watch,
    /** From memory. */
    findRunning: running.findRunning,
    listRunning: (): readonly Run[] =>
      [...running.entries().values()].flatMap(({ run }) => goesOn(run) ?? []),
    find: (mac: string, id: string): Run | null => running.find(mac, id)?.run ?? null,
    /** False: no such run. Keeps the last `MAX_LOG_BYTES`. */
    async saveLog(mac: string, id: string, text: Uint8Array): Promise<boolean> {
      if (running.find(mac, id) === null) return false
      await logs.save(mac, id, text, new Date(now()).toISOString())
      const entry = running.find(mac, id)
      if (entry === null) return false
      entry.run = { ...entry.run, has_log: true }
      await running.store(entry)
      return true
    },
    findLog: logs.find,
    listEndedFlashes: createEndedFlashes(database, elapsed),
    findWritten: written.find,
    /** Grows when that changed without a change of a machine's record. */
    writtenVersion: written.version,
    /** Removes its log, too; returns the run. */
    async remove(mac: string, id: string): Promise<Result<Run, 'unknown' | 'running'>> {
      const run = running.find(mac, id)?.run
      if (run === undefined) return refuse('unknown')
      if (run.result === null) return refuse('running')
      const isGone = await database.write((sql) => deleteRun(sql, mac, id))
      if (!isGone) return refuse('unknown')
      written.review(run.mac)
      changes?.announce({ topic: 'machine', mac: run.mac })
      return accept(run)
    },
    prune,
  }
}

type SortFilter = Omit<RunFilter, 'limit'>

/** Open runs come from memory. */
function createRunLists(database: Database, running: RunningRuns) {
  const renew = ({ n, run }: NumberedRun): NumberedRun => {
    const present = running.entries().get(run.mac)?.run
    return { n, run: present?.id === run.id ? present : run }
  }
  const listOpen = (condition: RunCondition, stalled?: boolean): readonly NumberedRun[] =>
    listRuns(database.sql, { ...condition, open: true }, MAX_OPEN)
      .map(renew)
      .filter(({ run }) => stalled === undefined || run.stalled === stalled)

  return {
    list({ stalled, limit, ...condition }: RunFilter): readonly NumberedRun[] {
      const count = Math.min(Math.max(1, Math.trunc(limit)), 1000)
      if (condition.open !== true && stalled === undefined) {
        return listRuns(database.sql, condition, count).map(renew)
      }
      return listOpen(condition, stalled).slice(0, count)
    },
    listSortRows({ stalled, ...condition }: SortFilter, column: RunColumn): readonly RunSortRow[] {
      const rows = listSortRows(database.sql, condition, column)
      if (stalled === undefined) return rows
      const open = new Set(listOpen(condition, stalled).map(({ n }) => n))
      return rows.filter(({ n }) => open.has(n))
    },
    read: (numbers: readonly number[]): readonly NumberedRun[] =>
      readRuns(database.sql, numbers).map(renew),
    count: ({ stalled, ...condition }: SortFilter): number =>
      stalled === undefined
        ? countRuns(database.sql, condition)
        : listOpen(condition, stalled).length,
  }
}

/** One machine cannot push out the history of others. */
const MAX_OF_ONE = 1000
const PRUNE_OF_ONE = `DELETE FROM runs WHERE mac = ? AND result IS NOT NULL AND n <=
  (SELECT n FROM runs WHERE mac = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`

async function pruneRunsOf(database: Database, mac: string): Promise<void> {
  const few = database.sql.get('SELECT count(*) AS c FROM runs WHERE mac = ?', mac)
  if (readNumber(few, 'c') <= MAX_OF_ONE) return
  await database.write((sql) => sql.run(PRUNE_OF_ONE, mac, mac, MAX_OF_ONE))
}

/** Knows what the last flash of each machine wrote: read from the runs once, then kept as runs end. */
function createLastWrites(database: Database) {
  let version = 0
  const { current } = keepRead(database, (sql) => {
    version += 1
    return new Map(sql.all(NEWEST_OF_ALL).map(readWritten))
  })

  function readAgain(mac: string): void {
    const known = current()
    const [newest] = database.sql.all(NEWEST_OF_ONE, mac).map(readWritten)
    if (newest === undefined) known.delete(mac)
    else known.set(...newest)
  }

  return {
    find: (mac: string): LastWritten | null => current().get(mac) ?? null,
    /** Grows when this changed without a change of a machine's record. */
    version: (): number => version,
    note(run: Run): void {
      if (hasWritten(run)) readAgain(run.mac)
    },
    review(mac: string): void {
      readAgain(mac)
      version += 1
    },
  }
}

/** An end before the first byte leaves the disk as it was. */
const hasWritten = ({ result, mode, bytes_written }: Run): boolean =>
  result !== null && mode !== 'capture' && (result === 'done' || bytes_written > 0)

const WROTE = `result IS NOT NULL AND record ->> '$.mode' <> 'capture'
  AND (result = 'done' OR record ->> '$.bytes_written' > 0)`
const COLUMNS = `mac, result, image, image_ref, model, serial,
  record ->> '$.image.sha256' AS sha256,
  coalesce(record ->> '$.ended_at', record ->> '$.updated_at') AS at`
const NEWEST_OF_ALL = `SELECT ${COLUMNS} FROM runs
  WHERE n IN (SELECT max(n) FROM runs WHERE ${WROTE} GROUP BY mac)`
const NEWEST_OF_ONE = `SELECT ${COLUMNS} FROM runs WHERE mac = ? AND ${WROTE} ORDER BY n DESC LIMIT 1`

const readWritten = (row: Row): [string, LastWritten] => [
  readText(row, 'mac'),
  {
    isWhole: readTextOrNull(row, 'result') === 'done',
    image: readTextOrNull(row, 'image'),
    ref: readTextOrNull(row, 'image_ref'),
    sha256: readTextOrNull(row, 'sha256'),
    model: readTextOrNull(row, 'model'),
    serial: readTextOrNull(row, 'serial'),
    at: readTextOrNull(row, 'at'),
  },
]

/** Runs as a person with a scope sees them: those of some machines only. */
interface SeenMacs {
  canSee(mac: string): boolean
  list(): readonly string[]
}

export function createSeenRuns(runs: Runs, { canSee, list }: SeenMacs): Runs {
  const within = <Filter>(filter: Filter) => ({ ...filter, among: list() })
  return {
    // Named one by one: a new member has to be decided here.
    take: runs.take,
    end: runs.end,
    giveUp: runs.giveUp,
    saveLog: runs.saveLog,
    remove: runs.remove,
    prune: runs.prune,
    marks: runs.marks,
    onLost: runs.onLost,
    sweep: runs.sweep,
    writtenVersion: runs.writtenVersion,
    findWritten: (mac) => (canSee(mac) ? runs.findWritten(mac) : null),
    listEndedFlashes: (since) => runs.listEndedFlashes(since).filter(({ mac }) => canSee(mac)),
    find: (mac, id) => (canSee(mac) ? runs.find(mac, id) : null),
    findRunning: (mac) => (canSee(mac) ? runs.findRunning(mac) : null),
    listRunning: () => runs.listRunning().filter(({ mac }) => canSee(mac)),
    findLog: async (mac, id) => (canSee(mac) ? await runs.findLog(mac, id) : null),
    list: (filter) => runs.list(within(filter)),
    count: (filter) => runs.count(within(filter)),
    listSortRows: (filter, column) => runs.listSortRows(within(filter), column),
    read: (numbers) => runs.read(numbers).filter(({ run }) => canSee(run.mac)),
  }
}

/** Packed bytes of all logs. */
const MAX_IN_ALL = 256 * 2 ** 20

const pack = promisify(gzip)
const unpack = promisify(gunzip)

export function createRunLogs(database: Database, maxInAll = MAX_IN_ALL) {
  return {
    /** Replaces an earlier log; on disk before it resolves. */
    async save(mac: string, id: string, text: Uint8Array, at: string): Promise<void> {
      const packed = await pack(text.subarray(Math.max(0, text.length - MAX_LOG_BYTES)))
      await database.write((sql) => sql.run(SAVE, mac, id, at, packed.length, packed))
    },
    async find(mac: string, id: string): Promise<string | null> {
      const row = database.sql.get('SELECT log FROM run_logs WHERE mac = ? AND id = ?', mac, id)
      const packed = row?.['log']
      if (!(packed instanceof Uint8Array)) return null
      const text = await unpack(packed, { maxOutputLength: MAX_LOG_BYTES })
      return text.toString('utf8')
    },
    async prune(): Promise<void> {
      await database.write((sql) => {
        sql.run(PRUNE_ORPHANS)
        sql.run(PRUNE_BYTES, maxInAll)
      })
    },
  }
}

const SAVE = `INSERT INTO run_logs (mac, id, posted_at, size, log) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (mac, id) DO UPDATE SET
  posted_at = excluded.posted_at, size = excluded.size, log = excluded.log`
const PRUNE_ORPHANS = `DELETE FROM run_logs WHERE NOT EXISTS
  (SELECT 1 FROM runs WHERE runs.mac = run_logs.mac AND runs.id = run_logs.id)`
const PRUNE_BYTES = `DELETE FROM run_logs WHERE (mac, id) IN (SELECT mac, id FROM
  (SELECT mac, id, sum(size) OVER (ORDER BY posted_at DESC, mac, id) AS total FROM run_logs) AS sums
  WHERE total > ?)`

/** The age of an answer, in milliseconds, while no run ends or is removed. */
const MAX_AGE_MS = 60_000
const MAX_FLASHES = 20_000

/** `now` in milliseconds. An index finds the runs; reading 10,000 takes some 30 ms. */
function createEndedFlashes(database: Database, now: () => number) {
  let kept: readonly EndedFlash[] = []
  let key = ''
  let readAt = Number.NEGATIVE_INFINITY

  /** Newest first. `since`: ISO time of the beginning. */
  return function list(since: string): readonly EndedFlash[] {
    const ends = database.sql.all(ENDS).map((row) => `${row['result']} ${row['c']} ${row['last']}`)
    const asked = `${database.epoch()} ${since} ${ends.join()}`
    const age = now() - readAt
    if (asked === key && age < MAX_AGE_MS) return kept
    kept = database.sql.all(ENDED, since, MAX_FLASHES).map(readRow)
    ;[key, readAt] = [asked, now()]
    return kept
  }
}

const ENDS = `SELECT result, count(*) AS c, max(n) AS last FROM runs WHERE result IS NOT NULL GROUP BY result`

const ENDED = `SELECT mac, began, result FROM runs WHERE began >= ? AND result IS NOT NULL AND record ->> '$.mode' <> 'capture'
  ORDER BY began DESC LIMIT ?`

const readRow = (row: Row): EndedFlash => ({
  mac: readText(row, 'mac'),
  began: readText(row, 'began'),
  isDone: readTextOrNull(row, 'result') === 'done',
})

/** Marks runs that stopped responding as stalled, and ends them after a day. */
interface RunWatchDependencies {
  readonly running: RunningRuns
  readonly changes: Changes | undefined
  /** Seconds without a post. */
  patience(): number
  now(): number
  /** Milliseconds of a steady clock. */
  elapsed(): number
}

/** After the last post, or the server's start. */
const GIVE_UP_MS = 24 * 3_600_000
const SILENT = 'The machine has not responded for a day.'

function createRunWatch({ running, changes, patience, now, elapsed }: RunWatchDependencies) {
  const listeners: ((run: Run) => Promise<void>)[] = []
  let marks = 0

  return {
    marks: (): number => marks,
    onLost: (listener: (run: Run) => Promise<void>) => void listeners.push(listener),
    async sweep(): Promise<void> {
      const at = elapsed()
      const marked = [...running.entries().values()].filter((entry) => {
        const before = entry.run
        entry.run =
          at - entry.heardAt > GIVE_UP_MS
            ? endRun(before, 'lost', SILENT, new Date(now()).toISOString())
            : markStalled(before, entry.heardAt, at, patience() * 1000)
        return entry.run !== before
      })
      marks += marked.length
      for (const { run } of marked) {
        changes?.announce({ topic: 'machine', mac: run.mac })
        changes?.announce({ topic: 'run', mac: run.mac })
      }
      await Promise.all(
        marked.map(async (entry) => {
          const { run } = entry
          await running.store(entry)
          if (run.result === 'lost') await Promise.all(listeners.map((listen) => listen(run)))
        }),
      )
    },
  }
}
