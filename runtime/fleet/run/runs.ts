/** The runs of all machines: current ones in memory, every change of phase on disk at once. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { RunColumn, RunSortRow } from './rules/run-order.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Database } from '#fleet/state/database.ts'
import type { Changes } from '#kit/host/changes.ts'
import { HOUR_MS, pruneRows, type Retention } from '#fleet/state/pruning.ts'
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
import { readNumber } from '#fleet/state/sqlite.ts'

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
    /** From memory; a new object after every change. */
    findRunning: (mac: string): Run | null => goesOn(running.entries().get(mac)?.run ?? null),
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

const goesOn = (run: Run | null): Run | null => (run?.result === null ? run : null)
