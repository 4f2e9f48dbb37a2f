/** Fetches releases into the boot directory: one at a time, with progress, cancellation and a record. */
import type { CompleteSet } from './rules/boot-set.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { BootFolder } from './boot-files.ts'
import type { Changes } from '#kit/host/changes.ts'
import {
  createJobs,
  isOver,
  type Job,
  type JobRecords,
  JobStateSchema,
  QUEUED,
} from '#kit/host/jobs.ts'
import { SYSTEM, type JournalEntry, type Journal, type Requester } from '#fleet/state/journal.ts'
import { z } from 'zod'
import { type Artifact, findDisagreement, renderList, type ReleasePlan } from './rules/release.ts'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { renderSafeUrl } from '#kit/net/rules/image-location.ts'
import { describeFullDisk, requireSpace } from '#fleet/state/disk-space.ts'
import { isAnswered } from '#kit/net/json-client.ts'
import {
  findRelease,
  type ReleaseFinderDependencies,
  type ReleaseQuery,
  readReleaseText,
  wrongRelease,
} from './release-finder.ts'
import { moveName, removeTree } from '#kit/host/folders.ts'
import { bringFile, openIncoming, type IncomingFiles } from '#kit/host/partial-files.ts'

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
          hint: 'Enter the site and repository of releases, or upload the files.',
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

const FetchedFileSchema = JobStateSchema.extend({
  name: z.string(),
  bytes_done: z.number(),
  bytes_total: z.number().nullable(),
})

export const FetchJobSchema = JobStateSchema.extend({
  tag: z.string(),
  bytes_done: z.number(),
  /** Null until the manifest is there. */
  bytes_total: z.number().nullable(),
  artifact: z.string().nullable(),
  /** The release's address; null until found. */
  base_url: z.string().nullable(),
  artifacts: z.array(FetchedFileSchema).readonly(),
})

type ReleaseFile = Readonly<z.infer<typeof FetchedFileSchema>>
export type FetchJob = Readonly<z.infer<typeof FetchJobSchema>>

const createFetchJob = (tag: string): FetchJob => ({
  tag,
  ...QUEUED,
  bytes_done: 0,
  bytes_total: null,
  artifact: null,
  base_url: null,
  artifacts: [],
})

const rememberFound = (job: FetchJob, base_url: string, files: readonly Artifact[]): FetchJob => ({
  ...job,
  base_url,
  bytes_total: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  artifacts: files.map(({ name, sizeBytes }) => ({
    name,
    ...QUEUED,
    bytes_done: 0,
    bytes_total: sizeBytes,
  })),
})

function rememberFile(job: FetchJob, name: string, change: Partial<ReleaseFile>): FetchJob {
  const artifacts = job.artifacts.map((file) =>
    file.name === name ? { ...file, ...change } : file,
  )
  return {
    ...job,
    artifacts,
    artifact: name,
    bytes_done: artifacts.reduce((sum, { bytes_done }) => sum + bytes_done, 0),
  }
}

/** Running files end as the whole did; waiting ones never began. */
function rememberEnd(job: FetchJob): FetchJob {
  const { status, started_at, finished_at } = job
  const error = started_at === null ? 'it was cancelled before it started' : job.error
  const artifacts = job.artifacts.map((file) =>
    file.status === 'running' ? { ...file, status, error, finished_at } : file,
  )
  return { ...job, error, artifact: null, artifacts }
}

// Fetches one release: finds it at its site, resumes earlier downloads, checks every file's digest, installs all together.

interface ReleaseRunDependencies extends ReleaseFinderDependencies {
  readonly bootFiles: Pick<BootFolder, 'dir' | 'stage' | 'install'>
  /** Default: releases with a manifest or versioned names. */
  readonly find?: typeof findRelease
}

interface ReleaseOrder extends ReleaseQuery {
  readonly keep: number
  onFound(base: string, plan: ReleasePlan): void
  onFile(name: string, bytesDone: number, isDone: boolean): void
}

/** Hidden: nobody can fetch it below `/boot/`. */
const FOLDER = '.fetching'
const SPARE_BYTES = 16 * 2 ** 20

/** Throws a Fault that names the file at fault; then nothing has changed. */
async function runRelease(
  parts: ReleaseRunDependencies,
  order: ReleaseOrder,
): Promise<ReleasePlan> {
  const { bootFiles, find = findRelease } = parts
  const { base, plan } = await find(parts, order)
  order.onFound(base, plan)
  await requireSpace(bootFiles.dir, plan.totalBytes + SPARE_BYTES, `Release ${plan.release.tag}`)
  // Resumes the downloads of a cancelled fetch.
  const incoming = await openIncoming(join(bootFiles.dir, FOLDER), plan.files)
  const staged = await bootFiles.stage()
  try {
    for (const list of plan.lists)
      await fetchList(parts, order, `${base}${list.name}`, staged, list)
    for (const file of plan.files)
      await fetchFile(parts, order, `${base}${file.name}`, incoming, file)
    for (const { name, sha256 } of plan.files)
      await moveName(incoming.pathOf(sha256), join(staged, name))
    order.signal.throwIfAborted()
    await bootFiles.install(staged, plan.sets, order.keep)
    return plan
  } catch (thrown) {
    throw (await describeFullDisk(thrown, bootFiles.dir)) ?? thrown
  } finally {
    await removeTree(staged)
    // A cancelled fetch may be resumed; a failed one starts anew.
    if (!order.signal.aborted) await removeTree(incoming.folder)
  }
}

async function fetchList(
  parts: ReleaseRunDependencies,
  order: ReleaseOrder,
  url: string,
  staged: string,
  { name, files }: ReleasePlan['lists'][number],
): Promise<void> {
  const text = await readReleaseText(parts, order, url).catch((thrown: unknown) => {
    order.signal.throwIfAborted()
    // The manifest has all digests, so a release without lists is whole.
    if (!isAnswered(thrown)) throw thrown
    return renderList(files)
  })
  const disagreement = findDisagreement(text, files)
  if (disagreement !== null) throw wrongRelease(url, disagreement)
  await writeFile(join(staged, name), text, { flag: 'wx' })
}

async function fetchFile(
  { sources }: ReleaseRunDependencies,
  { signal, onFile }: ReleaseOrder,
  url: string,
  incoming: IncomingFiles,
  file: Artifact,
): Promise<void> {
  const { name, sizeBytes, sha256 } = file
  const found = await bringFile(incoming, file, {
    signal,
    async *read(from) {
      await using source = await sources.open(url, { signal })
      yield* source.stream(from)
    },
    refuseLonger: () =>
      wrongRelease(url, `it is longer than the ${sizeBytes} bytes that it should have`),
    onBytes: (count) => onFile(name, count, false),
  })
  if (found === null) return onFile(name, sizeBytes, true)
  throw new Fault(
    'digest-mismatch',
    `${renderSafeUrl(url)} has the digest ${found}, but its release lists ${sha256}`,
    { hint: 'Nothing was changed. The publisher of the release has to fix it.' },
  )
}
