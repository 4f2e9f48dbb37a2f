/** The running downloads: one per blob however many clients ask, a few at a time, and why others failed. */
import type { FileHandle } from 'node:fs/promises'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { createPace, type Pace } from '#kit/foundation/pace.ts'
import { openStored } from '#cache/blobs/blobs.ts'
import { createGrowth, type Growth } from '#cache/blobs/growth.ts'
import { createJobs, isOver, QUEUED, type Job, type JobState } from '#kit/host/jobs.ts'
import { watch } from '#kit/host/watch.ts'
import {
  type Downloaded,
  type DownloadOrder,
  type DownloadDependencies,
  type DownloadProgress,
  runDownload,
} from './download-run.ts'

export interface Download {
  readonly key: string
  /** Counts from 1. */
  readonly id: number
  readonly isQueued: boolean
  readonly growth: Growth
  /** Decoded part of the frames, 0 to 1; null: not decoding. */
  readonly checked: number | null
  /** Bytes a second of the last moments. */
  readonly rate: number
  readonly eta: number | null
  /** Never rejects. */
  readonly ended: Promise<void>
}

export type Downloads = ReturnType<typeof createDownloads>

interface DownloadsDependencies extends DownloadDependencies {
  /** Resolves before readers learn that it is complete. */
  finished(order: DownloadOrder, result: Downloaded): Promise<void>
  readonly atOnce?: number
}

interface DownloadState extends JobState {
  readonly id: number
  readonly progress: DownloadProgress
  readonly pace: Pace
}

export function createDownloads(parts: DownloadsDependencies) {
  const { partials, atOnce = 3, now } = parts
  // One for each source; failed ones stay listed until they are tried again.
  const jobs = createJobs<DownloadState>({ parallel: atOnce, maxListed: Infinity, now })
  let count = 0

  function find(key: string): Download | null {
    const job = jobs.find(key)
    return job === null || isOver(job.state) ? null : toDownload(job)
  }

  async function run(order: DownloadOrder, { state, signal }: Job<DownloadState>) {
    const { progress, pace } = state
    const work = runDownload(parts, order, progress, signal)
    const measure = () => pace.add(performance.now() / 1000, progress.growth.bytes)
    const measuring = watch(work, 1000, measure)
    while ((await measuring.next()).done !== true);
    await parts.finished(order, await work)
  }

  return {
    find,
    /** Joins a running one. */
    start(order: DownloadOrder): Download {
      const { key } = order
      const before = find(key)
      if (before !== null) return before
      count += 1
      const progress: DownloadProgress = { growth: createGrowth(), checked: null }
      const state = { ...QUEUED, id: count, progress, pace: createPace() }
      const job = jobs.start(key, state, {
        run: (own) => run(order, own),
        async onEnd({ failure }) {
          if (failure !== null) progress.growth.fail(toFault(failure))
        },
      })
      return toDownload(job)
    },
    /** Null: the latest try did not fail, or there was none. */
    failureOf(key: string): Fault | null {
      const job = jobs.find(key)
      return job?.state.status === 'failed' ? toFault(job.failure) : null
    },
    forget: jobs.forget,
    /** False: there was none. */
    async cancel(key: string) {
      if (find(key) === null) return false
      await jobs.cancel(key, new Fault('cancelled', 'the download was cancelled'))
      await partials.remove(key)
      return true
    },
    /** Opens the file of a running download. */
    async follow(download: Download): Promise<FileHandle> {
      await download.growth.started
      return openStored(partials.pathOf(download.key))
    },
    /** Parts stay for the next start. */
    [Symbol.asyncDispose]: jobs[Symbol.asyncDispose],
  }
}

const toDownload = ({ key, state, ended }: Job<DownloadState>): Download => ({
  key,
  id: state.id,
  isQueued: state.status === 'queued',
  growth: state.progress.growth,
  checked: state.progress.checked,
  rate: state.pace.rate,
  eta: state.pace.eta(state.progress.growth.total),
  ended,
})

/** Our own mistakes are shown, too. */
function toFault(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown
  return new Fault('source-broken', `the download failed: ${renderError(thrown)}`, {
    cause: thrown,
  })
}
