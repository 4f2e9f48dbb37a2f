/** Earlier line: opens what machines boot from: the boot directory and the fetches that fill it. */
import { findLiveRelease } from '../../../services/boot/live-releases.ts'
import { createLiveFiles, type LiveFiles } from '../../../services/boot/live-files.ts'
import { FetchJobSchema } from '../../../services/boot/release-job.ts'
import { createReleaseFetches, type ReleaseFetches } from '../../../services/boot/releases.ts'
import { openJobRecords } from '../../../services/host/job-records.ts'
import { createRecords } from '../../../services/host/records.ts'
import type { Environment } from '../../../services/host/shell.ts'
import { createSources } from '../../../services/image/sources.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import type { State } from './state.ts'

interface Netboot extends AsyncDisposable {
  readonly bootFiles: LiveFiles
  readonly releases: ReleaseFetches
}

interface NetbootDependencies {
  readonly config: LineConfig
  readonly state: Pick<State, 'feed' | 'journal'>
  readonly env: Environment
  now(): Date
}

export async function openNetboot({
  config,
  state,
  env,
  now,
}: NetbootDependencies): Promise<Netboot> {
  const folders = decideFolders(config)
  const bootFiles = await createLiveFiles(folders.boot)
  const releases = createReleaseFetches({
    records: await openJobRecords(createRecords(folders.fetches), FetchJobSchema, now()),
    bootFiles,
    find: findLiveRelease,
    sources: createSources({ env }),
    env,
    journal: state.journal,
    feed: state.feed,
    settings() {
      const { boot, releases: site } = config.current()
      return {
        site: site.base_url,
        repository: boot.release_repo,
        tag: boot.release_tag,
        keys: site.public_keys,
        keep: 0,
      }
    },
    now,
  })
  return {
    bootFiles,
    releases,
    [Symbol.asyncDispose]: releases[Symbol.asyncDispose],
  }
}
