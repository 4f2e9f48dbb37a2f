/** Running runs, kept in memory; what must survive the process is stored at once. */
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { Database } from '#fleet/state/database.ts'
import { findRun, listRuns, saveRun } from './run-rows.ts'

interface RunningRun {
  run: Run
  /** As on disk; null: not there yet, or unknown. */
  stored: Run | null
  /** By the steady clock; a loaded run counts as heard at start. */
  heardAt: number
}

/** A machine has at most one. */
export const MAX_OPEN = 100_000

export type RunningRuns = ReturnType<typeof createRunningRuns>

export function createRunningRuns(
  database: Database,
  changes: Changes | undefined,
  elapsed: () => number,
  onStored: (run: Run) => void = () => undefined,
) {
  const entries = new Map<string, RunningRun>()
  let epoch: number | null = null

  /** Reads again when the database file was replaced; newer posts win. */
  const current = () => {
    const present = database.epoch()
    if (present === epoch) return entries
    for (const { run } of listRuns(database.sql, { open: true }, MAX_OPEN).toReversed()) {
      if (!entries.has(run.mac)) entries.set(run.mac, { run, stored: run, heardAt: elapsed() })
    }
    epoch = present
    return entries
  }

  /** In one transaction; an ended run leaves the memory. */
  async function store(entry: RunningRun, ...others: readonly Run[]): Promise<void> {
    const { run } = entry
    await database.write((sql) => {
      for (const each of [...others, run]) saveRun(sql, each)
    })
    for (const each of [...others, run]) onStored(each)
    entry.stored = run
    if (run.result === null || entry.run !== run) return
    if (entries.get(run.mac) === entry) entries.delete(run.mac)
  }

  database.beforeClosing(() => {
    const open = [...entries.values()].filter(({ run, stored }) => run !== stored)
    return Promise.all(open.map((entry) => store(entry)))
  })
  current()

  return {
    /** By machine. An ended run stays until that is on disk. */
    entries: (): ReadonlyMap<string, RunningRun> => current(),
    find(mac: string, id: string): RunningRun | null {
      const open = current().get(mac)
      if (open?.run.id === id) return open
      const run = findRun(database.sql, mac, id)?.run
      return run === undefined ? null : { run, stored: run, heardAt: 0 }
    },
    /** All in one transaction, on disk before it resolves. */
    async begin(run: Run, ...others: readonly Run[]): Promise<void> {
      const entry = { run, stored: null, heardAt: elapsed() }
      entries.set(run.mac, entry)
      changes?.announce({ topic: 'run', mac: run.mac })
      await store(entry, ...others)
    },
    /** On disk before it resolves if more than figures change. */
    async change(entry: RunningRun, run: Run): Promise<void> {
      entry.run = run
      changes?.announce({ topic: 'run', mac: run.mac })
      if (!isKept(entry)) await store(entry)
    },
    store,
  }
}

const isKept = ({ run, stored }: RunningRun): boolean =>
  run === stored ||
  (stored !== null && run.result === null && stored.result === null && run.phase === stored.phase)
