/** Fetches releases into the boot directory: one at a time, with progress, cancellation and a record. */
import type { CompleteSet } from './rules/boot-set.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { BootFolder } from './boot-files.ts'
import type { Changes } from '#kit/host/changes.ts'
import { createJobs, isOver, type Job, type JobRecords } from '#kit/host/jobs.ts'
import { SYSTEM, type JournalEntry, type Journal, type Requester } from '#fleet/state/journal.ts'
import {
  createFetchJob,
  rememberEnd,
  rememberFile,
  rememberFound,
  type FetchJob,
} from './release-job.ts'
import { runRelease, type ReleaseRunDependencies } from './release-run.ts'

export interface ReleaseSettings {
  /** Empty: not set, nothing can be fetched. */
  readonly site: string
  readonly repository: string
  readonly keys: readonly string[]
  /** Earlier sets that stay for a roll-back. */
  readonly keep: number
}

export type Releases = ReturnType<typeof createReleases>
export type ReleaseFetches = ReturnType<typeof createReleaseFetches>

interface ReleasesDependencies extends ReleaseRunDependencies {
  readonly journal: Journal
  readonly changes: Changes
  settings(): ReleaseSettings
  now(): Date
  readonly records?: JobRecords<FetchJob> | undefined
}

const MAX_JOBS = 50

export function createReleases(
  parts: ReleasesDependencies & { readonly bootFiles: Pick<BootFolder, 'use'> },
) {
  const record = createRecorder(parts.journal)
  return {
    ...createReleaseFetches(parts),
    async use(set: CompleteSet, by: Requester) {
      await parts.bootFiles.use(set)
      const words = `Machines boot version ${set.version} (${set.arch}) now`
      await record('netboot.artifacts.activated', words, by, { ...set })
    },
  }
}

/** Records jobs that a restart cut off. Disposing cancels running ones. */
export function createReleaseFetches(parts: ReleasesDependencies) {
  const { changes, settings, now } = parts
  const record = createRecorder(parts.journal)
  const recordOutcome = createOutcomeRecorder(record)
  const cancelledBy = new Map<string, Requester>()
  const jobs = createJobs<FetchJob>({
    parallel: 1,
    maxListed: MAX_JOBS,
    now,
    onChange: ({ tag }) => changes.announce({ topic: 'fetch', key: tag }),
    toEnded: rememberEnd,
    records: parts.records,
    onCutOff: (state) => recordOutcome(state, SYSTEM),
  })
  const obstacle = () => findObstacle(settings())

  return {
    /** Newest first; the last one of each tag. */
    jobs: () => jobs.list().map(({ state }) => state),
    /** Null: a fetch can begin. */
    obstacle,
    /** Returns the tag's open job, or a new one. */
    async start(tag: string, by: Requester): Promise<FetchJob> {
      const before = jobs.find(tag)
      if (before !== null && !isOver(before.state)) return before.state
      const missing = obstacle()
      if (missing !== null) {
        throw new Fault('conflict', `nothing can be fetched: ${missing}`, {
          hint: 'Enter where releases are, or upload the files.',
        })
      }
      const words = `Release ${tag} requested`
      const noted = record('netboot.artifacts.fetch.requested', words, by, { tag })
      let version = ''
      const job = jobs.start(tag, createFetchJob(tag), {
        async run(own) {
          version = await fetchRelease(parts, record, own)
        },
        async onEnd({ state }) {
          const canceller = cancelledBy.get(tag) ?? SYSTEM
          cancelledBy.delete(tag)
          await recordOutcome(state, state.status === 'cancelled' ? canceller : by, version)
        },
      })
      await noted
      return job.state
    },
    /** Resolves when it has ended; null: no such fetch. */
    async cancel(tag: string, by: Requester): Promise<FetchJob | null> {
      const job = jobs.find(tag)
      if (job === null || isOver(job.state)) return job?.state ?? null
      cancelledBy.set(tag, by)
      await jobs.cancel(tag, new Fault('cancelled', `the fetch of ${tag} was cancelled`))
      return job.state
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

type RecordRelease = ReturnType<typeof createRecorder>

const createRecorder =
  (journal: Journal) =>
  (kind: string, summary: string, by: Requester, details: JournalEntry['details']) =>
    journal.record({
      kind,
      subject_kind: 'netboot',
      subject_id: typeof details?.['tag'] === 'string' ? details['tag'] : null,
      actor: by.actor,
      source_ip: by.ip,
      summary,
      details,
    })

async function fetchRelease(
  parts: ReleasesDependencies,
  record: RecordRelease,
  job: Job<FetchJob>,
): Promise<string> {
  const now = () => parts.now().toISOString()
  const { tag } = job.state
  await record('netboot.artifacts.fetch.started', `Fetching release ${tag} started`, SYSTEM, {
    tag,
  })
  const { release } = await runRelease(parts, {
    ...parts.settings(),
    tag,
    signal: job.signal,
    onFound(base, { files }) {
      job.state = rememberFound(job.state, base, files)
    },
    onFile(name, bytes_done, isDone) {
      job.state = rememberFile(job.state, name, {
        bytes_done,
        ...(bytes_done === 0 ? { status: 'running', started_at: now() } : {}),
        ...(isDone ? { status: 'completed', finished_at: now() } : {}),
      })
    },
  })
  return release.version
}

const createOutcomeRecorder =
  (record: RecordRelease) =>
  async ({ tag, status, error, artifacts }: FetchJob, by: Requester, version = '') => {
    if (status === 'failed') {
      const words = `Release ${tag} could not be fetched: ${error}`
      await record('netboot.artifacts.fetch.failed', words, by, { tag, error })
    } else if (status === 'cancelled') {
      const why = by === SYSTEM ? ': the server stopped' : ''
      const words = `The fetch of release ${tag} was cancelled${why}`
      await record('netboot.artifacts.fetch.cancelled', words, by, { tag })
    } else {
      const words = `Release ${version} fetched: machines boot it from now on`
      const files = artifacts.map(({ name }) => name)
      await record('netboot.artifacts.fetched', words, by, { tag, version, files })
    }
  }
