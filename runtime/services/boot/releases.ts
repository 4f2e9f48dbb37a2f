/** Fetches releases into the boot directory: one at a time, with progress, cancellation and a record. */
import type { CompleteSet } from '../../core/boot/boot-set.ts'
import { Fault } from '../../core/foundation/fault.ts'
import type { BootFolder } from './boot-files.ts'
import type { Feed } from '../host/feed.ts'
import { createJobs, isOver, type Job, type JobRecords } from '../host/jobs.ts'
import { SYSTEM, type EventNote, type Journal, type Requester } from '../state/journal.ts'
import { createFetchJob, noteEnd, noteFile, noteFound, type FetchJob } from './release-job.ts'
import { runRelease, type ReleaseRunDependencies } from './release-run.ts'

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

export type Releases = ReturnType<typeof createReleases>
export type ReleaseFetches = ReturnType<typeof createReleaseFetches>

interface ReleasesDependencies extends ReleaseRunDependencies {
  readonly journal: Journal
  readonly feed: Feed
  settings(): ReleaseSettings
  now(): Date
  /** Lists the fetches of the process before; one that was cut off has failed. */
  readonly records?: JobRecords<FetchJob>
}

/** The last fetches stay listed. */
const MAX_JOBS = 50

/** With what only a folder of several sets has. */
export function createReleases(
  parts: ReleasesDependencies & { readonly bootFiles: Pick<BootFolder, 'use'> },
) {
  const note = createNote(parts.journal)
  return {
    ...createReleaseFetches(parts),
    /** Makes a set of the boot directory the one that machines boot. */
    async use(set: CompleteSet, by: Requester) {
      await parts.bootFiles.use(set)
      await note(
        'netboot.artifacts.activated',
        `Machines boot version ${set.version} (${set.arch}) now`,
        by,
        {
          ...set,
        },
      )
    },
  }
}

export function createReleaseFetches(parts: ReleasesDependencies) {
  const { feed, settings, now } = parts
  const note = createNote(parts.journal)
  const jobs = createJobs<FetchJob>({
    parallel: 1,
    maxListed: MAX_JOBS,
    now,
    onChange: ({ tag }) => feed.announce({ topic: 'fetch', key: tag }),
    toEnded: noteEnd,
    ...(parts.records === undefined ? {} : { records: parts.records }),
  })
  const obstacle = () => findObstacle(settings())

  return {
    /** Newest first; the last one of each tag. */
    jobs: () => jobs.list().map(({ state }) => state),
    /** Null: a fetch can begin; else what is missing. */
    obstacle,
    /** The one of that tag that is queued or running already, or a new one. */
    async start(tag: string, by: Requester): Promise<FetchJob> {
      const before = jobs.find(tag)
      if (before !== null && !isOver(before.state)) return before.state
      const missing = obstacle()
      if (missing !== null) {
        throw new Fault('conflict', `nothing can be fetched: ${missing}`, {
          hint: 'The settings page has both, or upload the files with PUT /boot/<name>.',
        })
      }
      const noted = note('netboot.artifacts.fetch.requested', `Release ${tag} requested`, by, {
        tag,
      })
      const job = jobs.start(tag, createFetchJob(tag), createWork(parts, note, by))
      await noted
      return job.state
    },
    /** Resolves once it has ended; as it was, where it had before. Null: no such fetch. */
    async cancel(tag: string, by: Requester): Promise<FetchJob | null> {
      const before = jobs.find(tag)?.state ?? null
      if (before === null || isOver(before)) return before
      await jobs.cancel(tag, new Fault('cancelled', `the fetch of ${tag} was cancelled`))
      const after = jobs.find(tag)?.state ?? null
      // Where it came too late, the release is there.
      if (after?.status === 'cancelled')
        await note(
          'netboot.artifacts.fetch.cancelled',
          `The fetch of release ${tag} was cancelled`,
          by,
          { tag },
        )
      return after
    },
    async awaitEnd(tag: string): Promise<FetchJob | null> {
      const job = jobs.find(tag)
      await job?.ended
      return job?.state ?? null
    },
    [Symbol.asyncDispose]: jobs[Symbol.asyncDispose],
  }
}

function findObstacle({ site, repository }: ReleaseSettings): string | null {
  if (site === '') return 'no release site is set: [releases] base_url or FLASHER_RELEASES_BASE_URL'
  if (repository === '')
    return 'no release repository is set: boot.release_repo or FLASHER_BOOT_RELEASE_REPO'
  return null
}

type Note = ReturnType<typeof createNote>

const createNote =
  (journal: Journal) =>
  (kind: string, summary: string, by: Requester, details: EventNote['details']) =>
    journal.record({
      kind,
      subject_kind: 'netboot',
      subject_id: typeof details?.['tag'] === 'string' ? details['tag'] : null,
      actor: by.actor,
      source_ip: by.ip,
      summary,
      details,
    })

function createWork(parts: ReleasesDependencies, note: Note, by: Requester) {
  const now = () => parts.now().toISOString()
  let version = ''
  return {
    async run(job: Job<FetchJob>) {
      const { tag } = job.state
      await note('netboot.artifacts.fetch.started', `Fetching release ${tag} started`, SYSTEM, {
        tag,
      })
      const { release } = await runRelease(parts, {
        ...parts.settings(),
        tag,
        signal: job.signal,
        onFound(base, { files }) {
          job.state = noteFound(job.state, base, files)
        },
        onFile(name, bytes_done, isDone) {
          job.state = noteFile(job.state, name, {
            bytes_done,
            ...(bytes_done === 0 ? { status: 'running', started_at: now() } : {}),
            ...(isDone ? { status: 'completed', finished_at: now() } : {}),
          })
        },
      })
      version = release.version
    },
    /** A cancelled one is recorded by `cancel`. */
    async onEnd({ state: { tag, status, error, artifacts } }: Job<FetchJob>) {
      if (status === 'failed') {
        const words = `Release ${tag} could not be fetched: ${error}`
        await note('netboot.artifacts.fetch.failed', words, by, { tag, error })
      } else if (status === 'completed') {
        const words = `Release ${version} fetched: machines boot it from now on`
        const files = artifacts.map(({ name }) => name)
        await note('netboot.artifacts.fetched', words, by, { tag, version, files })
      }
    },
  }
}
