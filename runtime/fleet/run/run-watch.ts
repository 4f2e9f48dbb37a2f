/** Marks runs that stopped responding as stalled, and ends them after a day. */
import { endRun, markStalled } from './rules/run-transition.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { RunningRuns } from './running-runs.ts'

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
const SILENT = 'It has not responded for a day.'

export function createRunWatch({ running, changes, patience, now, elapsed }: RunWatchDependencies) {
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
