/** Fetches of releases into the boot directory: one at a time, watched, cancelled, put on record. */
import { Fault, renderError } from '../../core/foundation/fault.ts'
import type { BootFolder } from './boot-files.ts'
import type { Feed } from '../host/feed.ts'
import type { Actor, EventNote, Journal } from '../state/journal.ts'
import {
  createFetchJob,
  isOver,
  noteEnd,
  noteFile,
  noteFound,
  type FetchJob,
} from './release-job.ts'
import { runRelease, type ReleaseRunDependencies } from './release-run.ts'

/** Who asked. */
interface FetchAsker {
  readonly actor: Actor
  readonly ip: string | null
}

/** Read when a fetch begins. */
export interface ReleaseSettings {
  /** Empty: none is set, and nothing can be fetched. */
  readonly site: string
  readonly repository: string
  /** The tag that is fetched unless another is named. */
  readonly tag: string
  /** Earlier sets that stay for a roll-back. */
  readonly keep: number
}

export interface Releases extends AsyncDisposable {
  /** Newest first; the last one of each tag. */
  jobs(): readonly FetchJob[]
  /** Null: a fetch can begin; else what is missing, in words. */
  obstacle(): string | null
  /** The one of that tag that is queued or running already, or a new one. */
  start(tag: string, by: FetchAsker): Promise<FetchJob>
  /** Resolves once it has ended; as it was, where it had before. Null: no such fetch. */
  cancel(tag: string, by: FetchAsker): Promise<FetchJob | null>
  awaitEnd(tag: string): Promise<FetchJob | null>
  /** Puts a set that lies in the boot directory in force. */
  use(set: Parameters<BootFolder['use']>[0], by: FetchAsker): Promise<void>
}

interface ReleasesDependencies extends ReleaseRunDependencies {
  readonly journal: Journal
  readonly feed: Feed
  settings(): ReleaseSettings
  now(): Date
}

interface Running {
  shown: FetchJob
  readonly stop: AbortController
  ended: Promise<void>
}

const MAX_JOBS = 50

export function createReleases(parts: ReleasesDependencies): Releases {
  const { bootFiles, journal, feed, settings } = parts
  const now = () => parts.now().toISOString()
  const jobs = new Map<string, Running>()
  let last: Promise<unknown> = Promise.resolve()

  const note = (kind: string, summary: string, by: FetchAsker, details: EventNote['details']) =>
    journal.record({
      kind,
      subject_kind: 'netboot',
      subject_id: typeof details?.['tag'] === 'string' ? details['tag'] : null,
      actor: by.actor,
      source_ip: by.ip,
      summary,
      details,
    })

  function obstacle(): string | null {
    const { site, repository } = settings()
    if (site === '')
      return 'no release site is set: [releases] base_url or FLASHER_RELEASES_BASE_URL'
    if (repository === '')
      return 'no release repository is set: boot.release_repo or FLASHER_BOOT_RELEASE_REPO'
    return null
  }

  async function run(job: Running, by: FetchAsker): Promise<void> {
    const { tag } = job.shown
    const { signal } = job.stop
    if (signal.aborted) return
    job.shown = { ...job.shown, status: 'running', started_at: now() }
    feed.announce({ topic: 'fetch', key: tag })
    try {
      await note('netboot.artifacts.fetch.started', `Release ${tag} is being fetched`, SYSTEM, {
        tag,
      })
      const { site, repository, keep } = settings()
      const plan = await runRelease(parts, {
        site,
        repository,
        tag,
        keep,
        signal,
        onFound(base, { files }) {
          job.shown = noteFound(job.shown, base, files)
        },
        onFile(name, bytes_done, isDone) {
          job.shown = noteFile(job.shown, name, {
            bytes_done,
            ...(bytes_done === 0 ? { status: 'running', started_at: now() } : {}),
            ...(isDone ? { status: 'completed', finished_at: now() } : {}),
          })
        },
      })
      end(job, 'completed', null)
      const { version } = plan.release
      const words = `Release ${version} was fetched and is what machines boot now`
      const files = plan.files.map(({ name }) => name)
      // Best effort: the release is in force, whatever becomes of the note.
      await note('netboot.artifacts.fetched', words, by, { tag, version, files }).catch(
        () => undefined,
      )
    } catch (thrown) {
      await fail(job, thrown, by)
    }
  }

  async function fail(job: Running, thrown: unknown, by: FetchAsker): Promise<void> {
    const { tag } = job.shown
    const error = renderError(job.stop.signal.aborted ? job.stop.signal.reason : thrown)
    const isCancelled = job.stop.signal.aborted
    end(job, isCancelled ? 'cancelled' : 'failed', error)
    if (isCancelled) return
    const words = `Release ${tag} could not be fetched: ${error}`
    // Best effort: the job itself says it, too.
    await note('netboot.artifacts.fetch.failed', words, by, { tag, error }).catch(() => undefined)
  }

  function end(job: Running, status: FetchJob['status'], error: string | null) {
    job.shown = noteEnd(job.shown, status, error, now())
    feed.announce({ topic: 'fetch', key: job.shown.tag })
  }

  function forgetOldest() {
    for (const [tag, { shown }] of jobs) {
      if (jobs.size <= MAX_JOBS) return
      if (isOver(shown)) jobs.delete(tag)
    }
  }

  return {
    jobs: () => [...jobs.values()].map(({ shown }) => shown).toReversed(),
    obstacle,
    async start(tag, by) {
      const before = jobs.get(tag)
      if (before !== undefined && !isOver(before.shown)) return before.shown
      const missing = obstacle()
      if (missing !== null) {
        throw new Fault('conflict', `nothing can be fetched: ${missing}`, {
          hint: 'The settings page has both, or upload the files with PUT /boot/<name>.',
        })
      }
      const job: Running = {
        shown: createFetchJob(tag),
        stop: new AbortController(),
        ended: Promise.resolve(),
      }
      jobs.delete(tag)
      jobs.set(tag, job)
      forgetOldest()
      job.ended = last.then(() => run(job, by))
      last = job.ended
      const words = `Release ${tag} is to be fetched`
      await note('netboot.artifacts.fetch.requested', words, by, { tag })
      return job.shown
    },
    async cancel(tag, by) {
      const job = jobs.get(tag)
      if (job === undefined) return null
      if (isOver(job.shown)) return job.shown
      job.stop.abort(new Fault('cancelled', `the fetch of ${tag} was cancelled`))
      if (job.shown.status === 'queued') end(job, 'cancelled', 'it was cancelled before it began')
      else await job.ended
      // Where it came too late, the release is there.
      if (job.shown.status !== 'cancelled') return job.shown
      const words = `The fetch of release ${tag} was cancelled`
      await note('netboot.artifacts.fetch.cancelled', words, by, { tag })
      return job.shown
    },
    async awaitEnd(tag) {
      const job = jobs.get(tag)
      await job?.ended
      return job?.shown ?? null
    },
    async use(set, by) {
      await bootFiles.use(set)
      const words = `Machines boot version ${set.version} (${set.arch}) now`
      await note('netboot.artifacts.activated', words, by, { ...set })
    },
    async [Symbol.asyncDispose]() {
      for (const { stop } of jobs.values()) stop.abort(new Fault('cancelled', 'the server stops'))
      await last
    },
  }
}

const SYSTEM: FetchAsker = { actor: 'system', ip: null }
