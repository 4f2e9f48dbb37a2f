/** The downloads under way: one for each blob however many ask, a few at a time, and why others failed. */
import type { FileHandle } from 'node:fs/promises'
import { Fault } from '../../core/foundation/fault.ts'
import { createPace, type Pace } from '../../core/foundation/pace.ts'
import {
  discardPart,
  type Downloaded,
  type DownloadOrder,
  type DownloadDependencies,
  runDownload,
} from './download-run.ts'
import { createGrowth, type Growth } from '../host/growth.ts'
import { untilAborted, watch } from '../host/watch.ts'

export interface Download {
  readonly key: string
  /** Counts from 1. */
  readonly id: number
  /** ISO time. */
  readonly startedAt: string
  readonly isQueued: boolean
  readonly growth: Growth
  /** Bytes a second of the last moments. */
  readonly rate: number
  readonly eta: number | null
  /** Resolves when it ended, one way or the other. */
  readonly ended: Promise<void>
}

export interface Downloads {
  /** Joins the one under way where there is one. */
  start(order: DownloadOrder): Download
  find(key: string): Download | null
  list(): readonly Download[]
  /** Why the latest try failed; null where it did not, or none was made. */
  failureOf(key: string): Fault | null
  forget(key: string): void
  /** Ends it and removes what has come of it. False when there was none. */
  cancel(key: string): Promise<boolean>
  /** What has come so far of the one under way, for reading while more comes. */
  follow(download: Download): Promise<FileHandle>
  /** Ends all of them; what has come stays for the next start. */
  close(): Promise<void>
}

interface DownloadsDependencies extends DownloadDependencies {
  /** Before anybody is told that it is complete. */
  finished(order: DownloadOrder, result: Downloaded): Promise<void>
  readonly atOnce?: number
}

interface Running extends Download {
  readonly stop: AbortController
}

export function createDownloads(parts: DownloadsDependencies): Downloads {
  const { blobs, notes, atOnce = 3 } = parts
  const running = new Map<string, Running>()
  const failures = new Map<string, Fault>()
  const lane = createLane(atOnce)
  let count = 0

  const run = (order: DownloadOrder, growth: Growth, signal: AbortSignal, begun: () => void) =>
    lane.run(signal, async () => {
      begun()
      await parts.finished(order, await runDownload(parts, order, growth, signal))
    })

  function start(order: DownloadOrder): Download {
    const { key } = order
    const before = running.get(key)
    if (before !== undefined) return before
    failures.delete(key)
    const growth = createGrowth()
    const stop = new AbortController()
    const pace = createPace()
    count += 1
    let isQueued = true
    const work = run(order, growth, stop.signal, () => {
      isQueued = false
    })
    const ended = measure(work, pace, growth)
      .then(
        () => growth.complete(),
        (thrown: unknown) => {
          const fault = describe(thrown, stop.signal)
          if (fault.code !== 'cancelled') failures.set(key, fault)
          growth.fail(fault)
        },
      )
      .finally(() => running.delete(key))
    const download: Running = {
      key,
      id: count,
      startedAt: parts.now().toISOString(),
      get isQueued() {
        return isQueued
      },
      growth,
      get rate() {
        return pace.rate
      },
      get eta() {
        return pace.eta(growth.total)
      },
      ended,
      stop,
    }
    running.set(key, download)
    return download
  }

  async function end(download: Running) {
    download.stop.abort(new Fault('cancelled', 'the download was cancelled'))
    await download.ended
  }

  return {
    start,
    find: (key) => running.get(key) ?? null,
    list: () => [...running.values()],
    failureOf: (key) => failures.get(key) ?? null,
    forget: (key) => void failures.delete(key),
    async cancel(key) {
      const download = running.get(key)
      if (download === undefined) return false
      await end(download)
      await discardPart({ blobs, notes }, key)
      return true
    },
    async follow(download) {
      await download.growth.started
      return blobs.readPart(download.key)
    },
    async close() {
      await Promise.all([...running.values()].map(end))
    },
  }
}

/** Keeps count of the speed, once a second. */
async function measure(work: Promise<void>, pace: Pace, growth: Growth) {
  const looks = watch(work, 1000, () => pace.add(performance.now() / 1000, growth.bytes))
  while ((await looks.next()).done !== true);
}

/** What stopped it, always as a Fault: a mistake of ours, too, is something to be shown. */
function describe(thrown: unknown, signal: AbortSignal): Fault {
  if (signal.aborted && signal.reason instanceof Fault) return signal.reason
  if (thrown instanceof Fault) return thrown
  const words = thrown instanceof Error ? thrown.message : String(thrown)
  return new Fault('source-broken', `the download failed: ${words}`, { cause: thrown })
}

/** Lets a few in at a time, in the order in which they came. */
function createLane(width: number) {
  const waiting: (() => void)[] = []
  let inside = 0

  /** Whoever waits longest takes the place that gets free. */
  function leave() {
    const next = waiting.shift()
    if (next === undefined) inside -= 1
    else next()
  }

  async function wait(signal: AbortSignal) {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push(resolve)
    try {
      await untilAborted(signal, promise)
    } catch (thrown) {
      const at = waiting.indexOf(resolve)
      if (at < 0) leave()
      else waiting.splice(at, 1)
      throw thrown
    }
  }

  return {
    async run(signal: AbortSignal, work: () => Promise<void>) {
      if (inside < width) inside += 1
      else await wait(signal)
      try {
        await work()
      } finally {
        leave()
      }
    },
  }
}
