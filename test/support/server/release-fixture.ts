/** Releases opened for a test: a state of their own, and the boot directory that is given. */
import { createBootFiles } from '#fleet/boot/boot-files.ts'
import { createReleases, type ReleaseSettings, FetchJobSchema } from '#fleet/boot/releases.ts'
import { openJobRecords } from '#kit/host/jobs.ts'
import { createRecords } from '#kit/host/records.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { REPOSITORY } from '../http/release-site.ts'
import { createStateFolder } from './state.ts'

export const BY = { actor: 'operator', ip: '192.0.2.7' } as const
const now = () => new Date()

export const openFetchRecords = (folder: string) =>
  openJobRecords(createRecords(folder), FetchJobSchema, now())

export async function openReleaseFixture(
  dir: string,
  settings: Partial<ReleaseSettings>,
  records?: Awaited<ReturnType<typeof openFetchRecords>>,
  limits: { readonly textMs?: number; readonly stallMs?: number } = {},
) {
  const state = await createStateFolder()
  const services = await state.open()
  const bootFiles = await createBootFiles({ dir, now })
  const releases = createReleases({
    bootFiles,
    sources: createSources({ env: {}, retryMs: 1, ...limits }),
    env: {},
    ...limits,
    journal: services.journal,
    changes: services.changes,
    settings: () => ({
      site: '',
      repository: REPOSITORY,
      tag: 'latest',
      keys: [],
      keep: 1,
      ...settings,
    }),
    now,
    records,
  })
  return {
    bootFiles,
    releases,
    journal: services.journal,
    async fetch(tag: string) {
      await releases.start(tag, BY)
      const job = await releases.awaitEnd(tag)
      if (job === null) throw new Error('no job')
      return job
    },
    kinds: async () =>
      (await services.journal.list({ limit: 100 })).map(({ kind }) => kind).toReversed(),
    async [Symbol.asyncDispose]() {
      await releases[Symbol.asyncDispose]()
      await bootFiles[Symbol.asyncDispose]()
      await services[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
    },
  }
}
