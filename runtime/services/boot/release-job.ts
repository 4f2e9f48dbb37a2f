/** One fetch of a release, as it is listed and put on record. */
import type { Artifact } from '../../core/boot/release.ts'

type FetchStatus = 'queued' | 'running' | 'completed' | 'cancelled' | 'failed'

/** Times are ISO. */
interface FetchedFile {
  readonly name: string
  readonly status: FetchStatus
  readonly bytes_done: number
  readonly bytes_total: number | null
  readonly error: string | null
  readonly started_at: string | null
  readonly finished_at: string | null
}

export interface FetchJob {
  readonly tag: string
  readonly status: FetchStatus
  readonly bytes_done: number
  /** Null until the manifest is there. */
  readonly bytes_total: number | null
  /** Which file is on its way. */
  readonly artifact: string | null
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly error: string | null
  /** Where the release lies; null until it was found. */
  readonly base_url: string | null
  readonly artifacts: readonly FetchedFile[]
}

export const createFetchJob = (tag: string): FetchJob => ({
  tag,
  status: 'queued',
  bytes_done: 0,
  bytes_total: null,
  artifact: null,
  started_at: null,
  finished_at: null,
  error: null,
  base_url: null,
  artifacts: [],
})

export const isOver = ({ status }: FetchJob): boolean => status !== 'queued' && status !== 'running'

/** What is known once the manifest is there. */
export const noteFound = (
  job: FetchJob,
  base_url: string,
  files: readonly Artifact[],
): FetchJob => ({
  ...job,
  base_url,
  bytes_total: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  artifacts: files.map(({ name, sizeBytes }) => ({
    name,
    status: 'queued',
    bytes_done: 0,
    bytes_total: sizeBytes,
    error: null,
    started_at: null,
    finished_at: null,
  })),
})

/** One file went on; `bytes_done` of the whole follows. */
export function noteFile(job: FetchJob, name: string, change: Partial<FetchedFile>): FetchJob {
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

/** It ended; files that were under way end the same way, those that waited never began. */
export const noteEnd = (
  job: FetchJob,
  status: FetchStatus,
  error: string | null,
  at: string,
): FetchJob => ({
  ...job,
  status,
  error,
  artifact: null,
  finished_at: at,
  artifacts: job.artifacts.map((file) =>
    file.status === 'running' ? { ...file, status, error, finished_at: at } : file,
  ),
})
