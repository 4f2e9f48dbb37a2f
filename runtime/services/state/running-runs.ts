/** Runs that go on, in memory; what must outlive the process is stored at once. */
import type { Run } from '../../core/machine/run.ts'
import type { Database } from './database.ts'
import { findRun, listOpen, saveRun } from './run-rows.ts'

export interface Entry {
  run: Run
  /** As it is on disk; null: not there, or nobody knows. */
  stored: Run | null
  /** Milliseconds; a server that was away listens anew. */
  heardAt: number
}

interface LiveRuns {
  /** By machine: at most one run of each goes on. One that has ended stays until that is on disk. */
  entries(): ReadonlyMap<string, Entry>
  find(mac: string, id: string): Entry | null
  put(entry: Entry): void
  /** Stores it, and others in the same transaction; one that has ended leaves. */
  store(entry: Entry, ...others: readonly Run[]): Promise<void>
  /** The same where the disk does not know yet what must outlive us: anything but figures. */
  keep(entry: Entry): Promise<void>
}

export function createLiveRuns(database: Database, now: () => number): LiveRuns {
  const entries = new Map<string, Entry>()
  let epoch: number | null = null

  /** Reads what goes on when the file was replaced; what was heard of since stays. */
  const current = () => {
    const present = database.epoch()
    if (present === epoch) return entries
    for (const { run } of listOpen(database.sql)) {
      if (!entries.has(run.mac)) entries.set(run.mac, { run, stored: run, heardAt: now() })
    }
    epoch = present
    return entries
  }

  async function store(entry: Entry, ...others: readonly Run[]): Promise<void> {
    const { run } = entry
    await database.write((sql) => {
      for (const each of [...others, run]) saveRun(sql, each)
    })
    entry.stored = run
    if (run.result === null || entry.run !== run) return
    if (entries.get(run.mac) === entry) entries.delete(run.mac)
  }

  database.beforeClosing(async () => {
    const open = [...entries.values()].filter(({ run, stored }) => run !== stored)
    await Promise.all(open.map((entry) => store(entry)))
  })
  current()

  return {
    entries: current,
    find(mac, id) {
      const open = current().get(mac)
      if (open?.run.id === id) return open
      const run = findRun(database.sql, mac, id)?.run
      return run === undefined ? null : { run, stored: run, heardAt: 0 }
    },
    put: (entry) => void entries.set(entry.run.mac, entry),
    store,
    async keep(entry) {
      if (!isKept(entry)) await store(entry)
    },
  }
}

const isKept = ({ run, stored }: Entry): boolean =>
  run === stored ||
  (stored !== null && run.result === null && stored.result === null && run.phase === stored.phase)
