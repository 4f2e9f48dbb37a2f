/** Applies machines' reports to their runs, and ends runs in other ways. */
import { randomUUID } from 'node:crypto'
import { takeOne, type Bucket } from '#kit/foundation/bucket.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { decideEnded, endRun, nextRun, type RunEnd } from './rules/run-transition.ts'
import {
  createRun,
  type RunProgress,
  type Run,
  type RunOrigin,
} from '#engine/inventory/rules/run.ts'
import type { Database } from '#fleet/state/database.ts'
import { findNewest, type RunningRuns } from './run-rows.ts'

export interface RunUpdate {
  readonly run: Run
  readonly isNew: boolean
  readonly hasEnded: boolean
  /** More than figures changed. */
  readonly isTurn: boolean
  /** The machine's former run, if it was still open. */
  readonly lost: Run | null
}

/** For one machine; a real one takes a minute to boot. */
const BEGINNINGS = { perMinute: 4, most: 20 }
const MAX_BUCKETS = 20_000

interface RunPostsDependencies {
  readonly database: Database
  readonly running: RunningRuns
  now(): number
  /** Milliseconds of a steady clock. */
  elapsed(): number
  onBegun(mac: string): Promise<void>
}

export function createRunPosts({ database, running, now, elapsed, onBegun }: RunPostsDependencies) {
  const buckets = new Map<string, Bucket>()
  const iso = () => new Date(now()).toISOString()

  function mayBegin(mac: string): boolean {
    if (buckets.size > MAX_BUCKETS) buckets.clear()
    const next = takeOne(buckets.get(mac) ?? null, elapsed(), BEGINNINGS)
    if (next !== null) buckets.set(mac, next)
    return next !== null
  }

  /** Ends the machine's open run in the same transaction, and returns it. */
  async function begin(run: Run): Promise<Run | null> {
    const former = running.entries().get(run.mac)?.run ?? null
    const lost = former === null ? null : endRun(former, 'lost', SUPERSEDED, iso())
    await running.begin(run, ...(lost === null ? [] : [lost]))
    await onBegun(run.mac)
    return lost === former ? null : lost
  }

  return {
    /**
     * More than figures is on disk before it resolves. Refused: the machine begins runs faster than
     * a real one could. `server`: the address of the post at a site with several servers; else
     * null.
     */
    async take(
      post: RunProgress,
      origin: RunOrigin,
      server: string | null = null,
    ): Promise<Result<RunUpdate, 'too-many'>> {
      const known = running.find(origin.mac, post.run)
      if (known !== null) {
        const before = known.run
        const run = heardBy(server, before, nextRun(before, post, iso()))
        known.heardAt = elapsed()
        await running.change(known, run)
        return accept({ run, isNew: false, lost: null, ...compare(before, run) })
      }
      if (!mayBegin(origin.mac)) return refuse('too-many')
      const at = iso()
      const run = nextRun({ ...createRun(post.run, origin, at), server }, post, at)
      const lost = await begin(run)
      return accept({ run, isNew: true, hasEnded: run.result !== null, isTurn: true, lost })
    },
    /** Ends the named or open run, or one made of the machine's plan. Null: none is known. */
    async end(origin: RunOrigin, end: RunEnd): Promise<Pick<RunUpdate, 'run' | 'hasEnded'> | null> {
      const { mac } = origin
      const open = running.entries().get(mac)
      const newest = open?.run ?? findNewest(database.sql, mac)?.run ?? null
      const at = iso()
      const named = end.run ? running.find(mac, end.run) : null
      if (named !== null) {
        const run = endRun(named.run, end.result, end.reason, at)
        const hasEnded = run.result !== named.run.result
        await running.change(named, run)
        return { run, hasEnded }
      }
      const before = decideEnded(newest, end, { id: `plan-${randomUUID()}`, origin }, at)
      if (before === null) return null
      const run = endRun(before, end.result, end.reason, at)
      if (before === newest) {
        await running.change(open ?? { run, stored: before, heardAt: 0 }, run)
      } else await begin(run)
      return { run, hasEnded: run.result !== before.result }
    },
    /** The machine is gone, or does something else. Null: no open run. */
    async giveUp(mac: string, reason: string): Promise<Run | null> {
      const entry = running.entries().get(mac)
      if (entry === undefined || entry.run.result !== null) return null
      const lost = endRun(entry.run, 'lost', reason, iso())
      await running.change(entry, lost)
      return lost
    },
  }
}

/** A post that changes nothing leaves the run as it is. */
const heardBy = (server: string | null, before: Run, run: Run): Run =>
  run === before || server === null ? run : { ...run, server }

const SUPERSEDED = 'It stopped responding, and the machine began another run.'

const compare = (before: Run, run: Run): Pick<RunUpdate, 'hasEnded' | 'isTurn'> => ({
  hasEnded: run.result !== null && run.result !== before.result,
  isTurn: run.phase !== before.phase || run.result !== before.result || before.stalled,
})
