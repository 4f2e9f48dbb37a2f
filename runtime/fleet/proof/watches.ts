/** The runs whose new system is awaited: in memory, and with their runs on disk. */
import type { Proof, Run } from '../../engine/inventory/rules/run.ts'
import type { Changes } from '../../kit/host/changes.ts'
import { findRun, listWatched, saveRun } from '../run/run-rows.ts'
import type { Database } from '../state/database.ts'
import { isOpen, nextProof, type Sign } from './rules/proof.ts'

interface WatchesDependencies {
  readonly database: Database
  readonly changes: Changes
  now(): Date
  /** Milliseconds of a clock that nobody sets. */
  elapsed(): number
}

/** A run whose system is awaited. */
export type ProvedRun = Run & { readonly proof: Proof }

export interface Watch {
  run: ProvedRun
  /** When the wait is over, on the clock that nobody sets. */
  readonly endsAt: number
}

export function createWatches({ database, changes, now, elapsed }: WatchesDependencies) {
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
