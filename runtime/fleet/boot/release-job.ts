/** One fetch of a release, as it is listed and recorded. */
import { z } from 'zod'
import type { Artifact } from './rules/release.ts'
import { JobStateSchema, QUEUED } from '#kit/host/jobs.ts'

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

export const createFetchJob = (tag: string): FetchJob => ({
  tag,
  ...QUEUED,
  bytes_done: 0,
  bytes_total: null,
  artifact: null,
  base_url: null,
  artifacts: [],
})

export const rememberFound = (
  job: FetchJob,
  base_url: string,
  files: readonly Artifact[],
): FetchJob => ({
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

export function rememberFile(job: FetchJob, name: string, change: Partial<ReleaseFile>): FetchJob {
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
export function rememberEnd(job: FetchJob): FetchJob {
  const { status, started_at, finished_at } = job
  const error = started_at === null ? 'it was cancelled before it began' : job.error
  const artifacts = job.artifacts.map((file) =>
    file.status === 'running' ? { ...file, status, error, finished_at } : file,
  )
  return { ...job, error, artifact: null, artifacts }
}
