/** The run that goes on for a machine: what is noted before it begins, what the machine reports, how it ends. */
import { randomUUID } from 'node:crypto'
import { takeOne, type Bucket } from '#kit/foundation/bucket.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { decideEnded, endRun, nextRun, type RunEnd } from './rules/run-record.ts'
import {
  createRun,
  type RunProgress,
  type Run,
  type RunOrigin,
} from '#engine/inventory/rules/run.ts'
import type { Database } from '#fleet/state/database.ts'
import { findNewest, findRun, listRuns, MAX_OPEN, saveRun } from './run-rows.ts'
import { type BootTimes, decideReportedStamps, type ReportedStamps } from './rules/waterfall.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import type { Changes } from '#kit/host/changes.ts'

// In memory; what must survive the process is stored at once.

interface RunningRun {
  run: Run
  /** As on disk; null: not there yet, or unknown. */
  stored: Run | null
  /** By the steady clock; a loaded run counts as heard at start. */
  heardAt: number
}

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
    /** Null: none goes on. A new object after every change. */
    findRunning: (mac: string): Run | null => goesOn(current().get(mac)?.run ?? null),
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

export const goesOn = (run: Run | null): Run | null => (run?.result === null ? run : null)

// Machines report, and what they report changes their run.

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

const SUPERSEDED = 'The machine stopped responding, then started another run.'

const compare = (before: Run, run: Run): Pick<RunUpdate, 'hasEnded' | 'isTurn'> => ({
  hasEnded: run.result !== null && run.result !== before.result,
  isTurn: run.phase !== before.phase || run.result !== before.result || before.stalled,
})

// When machines were turned on and asked for the files of their live system, until a run takes it.

const NOTED = ['power_on_at', 'kernel_at', 'initrd_at'] as const
type NotedStamp = (typeof NOTED)[number]

/** Machines that are turned on and never flash are forgotten, oldest first. */
const MAX_MACHINES = 10_000

/** Boot loaders ask several times within one boot. */
const SAME_BOOT_MS = 5000
/** Firmware that trains much memory takes minutes; beyond this it is another boot. */
const LONGEST_FIRMWARE_MS = 30 * 60_000

type Noted = Partial<Record<NotedStamp, string>> & ReportedStamps

interface Boot {
  readonly noted: Noted
  /** Milliseconds since the epoch; null: it has not asked yet. */
  readonly askedAt: number | null
}

const NO_BOOT: Boot = { noted: {}, askedAt: null }

export type BootStamps = ReturnType<typeof createBootStamps>

export function createBootStamps(now: () => Date, changes: Changes) {
  const boots = new Map<string, Boot>()

  function keep(mac: string, boot: Boot): void {
    boots.delete(mac)
    if (boots.size >= MAX_MACHINES) {
      for (const oldest of boots.keys()) {
        boots.delete(oldest)
        break
      }
    }
    boots.set(mac, boot)
  }

  /** Forgets what was noted of the former boot. */
  function beginBoot(mac: string): void {
    const boot = boots.size === 0 ? undefined : boots.get(mac)
    if (boot === undefined) return
    const at = now().getTime()
    const { noted, askedAt } = boot
    if (askedAt !== null && at - askedAt < SAME_BOOT_MS) return
    const { power_on_at: on } = noted
    const isFirst = askedAt === null && on !== undefined
    if (isFirst && at - epochOf(on) <= LONGEST_FIRMWARE_MS) {
      boots.set(mac, { noted: { power_on_at: on }, askedAt: at })
    } else boots.delete(mac)
  }
  changes.listen(
    (change) => {
      if (change.topic === 'boot') beginBoot(change.mac)
    },
    ['boot'],
  )

  return {
    /** Forgets what a former boot noted after this stamp. */
    note(mac: string, stamp: NotedStamp): void {
      const kept = NOTED.slice(0, NOTED.indexOf(stamp))
      const { noted, askedAt } = boots.get(mac) ?? NO_BOOT
      const earlier = kept.flatMap((name) =>
        noted[name] === undefined ? [] : [[name, noted[name]] as const],
      )
      keep(mac, {
        noted: { ...Object.fromEntries(earlier), [stamp]: now().toISOString() },
        askedAt: stamp === 'power_on_at' ? null : askedAt,
      })
    },
    tell(mac: string, times: BootTimes): void {
      const boot = boots.get(mac) ?? NO_BOOT
      const { initrd_at, kernel_at } = boot.noted
      const reported = decideReportedStamps(times, now().getTime(), initrd_at ?? kernel_at ?? null)
      if (reported.start_at !== undefined)
        keep(mac, { ...boot, noted: { ...boot.noted, ...reported } })
    },
    take(mac: string): Noted {
      const { noted } = boots.get(mac) ?? NO_BOOT
      boots.delete(mac)
      return noted
    },
  }
}
