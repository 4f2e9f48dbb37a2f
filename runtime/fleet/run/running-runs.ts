/** Running runs, kept in memory; what must survive the process is stored at once. */
import type { Run } from '../../engine/inventory/rules/run.ts'
import type { Changes } from '../../kit/host/changes.ts'
import type { Database } from '../state/database.ts'
import { findRun, listRuns, saveRun } from './run-rows.ts'

interface RunningRun {
  run: Run
  /** The run as it is on disk; null: not there yet, or unknown. */
  stored: Run | null
  /**
   * When the run was last heard of, on the clock that nobody sets; one that was loaded counts as
   * heard of at the start.
   */
  heardAt: number
}

/** A machine has at most one open run. */
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

  /** Reads them anew when the file was replaced; runs that posted since stay as they are. */
  const current = () => {
    const present = database.epoch()
    if (present === epoch) return entries
    for (const { run } of listRuns(database.sql, { open: true }, MAX_OPEN).toReversed()) {
      if (!entries.has(run.mac)) entries.set(run.mac, { run, stored: run, heardAt: elapsed() })
    }
    epoch = present
    return entries
  }

  /** Stores it, and others in the same transaction; one that has ended leaves. */
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
    /** By machine: at most one run of each goes on. One that has ended stays until that is on disk. */
    entries: (): ReadonlyMap<string, RunningRun> => current(),
    find(mac: string, id: string): RunningRun | null {
      const open = current().get(mac)
      if (open?.run.id === id) return open
      const run = findRun(database.sql, mac, id)?.run
      return run === undefined ? null : { run, stored: run, heardAt: 0 }
    },
    /** On disk before it resolves, with others in the same transaction. */
    async begin(run: Run, ...others: readonly Run[]): Promise<void> {
      const entry = { run, stored: null, heardAt: elapsed() }
      entries.set(run.mac, entry)
      changes?.announce({ topic: 'run', mac: run.mac })
      await store(entry, ...others)
    },
    /** Changes a run; the change is on disk before it resolves if more than figures differ. */
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
