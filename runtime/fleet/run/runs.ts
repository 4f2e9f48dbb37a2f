/** The runs of all machines: current ones in memory, every change of phase on disk at once. */
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { RunColumn, RunSortRow } from './rules/run-order.ts'
import type { Run } from '../../engine/inventory/rules/run.ts'
import type { Database } from '../state/database.ts'
import type { Changes } from '../../kit/host/changes.ts'
import { HOUR_MS, pruneRows, type Retention } from '../state/pruning.ts'
import { createEndedFlashes } from './ended-flashes.ts'
import { createLastWrites } from './last-written.ts'
import { createRunLogs } from './run-logs.ts'
import { createRunPosts } from './run-posts.ts'
import {
  countRuns,
  deleteRun,
  listRuns,
  listSortRows,
  readRuns,
  type NumberedRun,
  type RunCondition,
} from './run-rows.ts'
import { createRunWatch } from './run-watch.ts'
import { createRunningRuns, MAX_OPEN, type RunningRuns } from './running-runs.ts'
import { readNumber } from '../state/sqlite.ts'

export interface RunFilter extends RunCondition {
  /** Which open runs are meant: only the stalled ones, or only the others; absent: all. */
  readonly stalled?: boolean | undefined
  /** 1 to 1000. */
  readonly limit: number
}

interface RunsOptions {
  readonly changes?: Changes
  retention?(): Retention
  /** Seconds without a post after which a run is stalled; 30 by default. */
  patience?(): number
  now?(): Date
  /** Milliseconds of a clock that nobody sets; the process's own unless said. */
  elapsed?(): number
}

const KEPT: Retention = { count: 10_000, days: 730 }
/** What goes on is never removed. */
const TABLE = { table: 'runs', number: 'n', time: 'began', condition: 'result IS NOT NULL' }
const PATIENCE_SECONDS = 30
const SWEEP_MS = 1000
/** Pruning goes ahead after so many new runs, and each hour. */
const PRUNE_EVERY = 200

export type Runs = ReturnType<typeof createRuns>

/**
 * Creates the store of runs. It looks for stalled runs every second, and removes old ones every
 * hour.
 */
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
    // Best effort: it is tried again each hour.
    if (begun % PRUNE_EVERY === 0) prune().catch(() => undefined)
  }
  const watch = createRunWatch({ running, changes, patience, now, elapsed })
  database.repeat(SWEEP_MS, watch.sweep)
  database.repeat(HOUR_MS, prune)

  return {
    ...createRunPosts({ database, running, now, elapsed, onBegun }),
    ...createRunLists(database, running),
    ...watch,
    /** The run of this machine that goes on, from memory. Another object after every change. */
    findRunning: (mac: string): Run | null => goesOn(running.entries().get(mac)?.run ?? null),
    /** All that go on, from memory. */
    listRunning: (): readonly Run[] =>
      [...running.entries().values()].flatMap(({ run }) => goesOn(run) ?? []),
    find: (mac: string, id: string): Run | null => running.find(mac, id)?.run ?? null,
    /** False when there is no such run. At most the tail of `MAX_LOG_BYTES` is kept. */
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
    /** Lists the flashes that began at this ISO time or later and have ended, as soon as they have. */
    listEndedFlashes: createEndedFlashes(database, elapsed),
    /** What the last flash of this machine wrote; null: nothing, as far as runs tell. */
    findWritten: written.find,
    /** Grows when that changed without a change of a machine's record. */
    writtenVersion: written.version,
    /**
     * Removes a run with its log, and resolves to what it was. Refused: there is none, or it has
     * not ended.
     */
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
    /** Removes what retention no longer keeps; also runs every hour. */
    prune,
  }
}

type SortFilter = Omit<RunFilter, 'limit'>

/** What goes on is as it is in memory. */
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
    /** Newest first. */
    list({ stalled, limit, ...condition }: RunFilter): readonly NumberedRun[] {
      const count = Math.min(Math.max(1, Math.trunc(limit)), 1000)
      if (condition.open !== true && stalled === undefined) {
        return listRuns(database.sql, condition, count).map(renew)
      }
      return listOpen(condition, stalled).slice(0, count)
    },
    /** All that the filter finds, with what the column is sorted by. */
    listSortRows({ stalled, ...condition }: SortFilter, column: RunColumn): readonly RunSortRow[] {
      const rows = listSortRows(database.sql, condition, column)
      if (stalled === undefined) return rows
      const open = new Set(listOpen(condition, stalled).map(({ n }) => n))
      return rows.filter(({ n }) => open.has(n))
    },
    /** Reads the runs of these numbers, in this order. */
    read: (numbers: readonly number[]): readonly NumberedRun[] =>
      readRuns(database.sql, numbers).map(renew),
    /** All that the filter finds, however many pages they fill. */
    count: ({ stalled, ...condition }: SortFilter): number =>
      stalled === undefined
        ? countRuns(database.sql, condition)
        : listOpen(condition, stalled).length,
  }
}

/** The most runs of one machine: none can push the others' history out. */
const MAX_OF_ONE = 1000
const PRUNE_OF_ONE = `DELETE FROM runs WHERE mac = ? AND result IS NOT NULL AND n <=
  (SELECT n FROM runs WHERE mac = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`

async function pruneRunsOf(database: Database, mac: string): Promise<void> {
  const few = database.sql.get('SELECT count(*) AS c FROM runs WHERE mac = ?', mac)
  if (readNumber(few, 'c') <= MAX_OF_ONE) return
  await database.write((sql) => sql.run(PRUNE_OF_ONE, mac, mac, MAX_OF_ONE))
}

const goesOn = (run: Run | null): Run | null => (run?.result === null ? run : null)
