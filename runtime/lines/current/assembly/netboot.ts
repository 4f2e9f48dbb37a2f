/** Current line: what machines boot from, opened for the server: the boot directory and what fills it. */
import { createBootFiles, type BootFolder } from '../../../services/boot-files.ts'
import { createReleases, type Releases } from '../../../services/releases.ts'
import type { Environment } from '../../../services/shell.ts'
import { createSources } from '../../../services/sources.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import type { State } from './state.ts'

export interface Netboot extends AsyncDisposable {
  readonly bootFiles: BootFolder
  readonly releases: Releases
}

export interface NetbootParts {
  readonly config: LineConfig
  readonly state: State
  readonly env: Environment
  now(): Date
}

export async function openNetboot({ config, state, env, now }: NetbootParts): Promise<Netboot> {
  const bootFiles = await createBootFiles({
    dir: decideFolders(config).boot,
    changed: () => state.feed.announce({ topic: 'fetch', key: 'active' }),
    now,
  })
  const releases = createReleases({
    bootFiles,
    sources: createSources({ env }),
    env,
    journal: state.journal,
    feed: state.feed,
    settings() {
      const { boot, releases: site, retention } = config.current()
      return {
        site: site.base_url,
        repository: boot.release_repo,
        tag: boot.release_tag,
        keep: retention.boot_sets,
      }
    },
    now,
  })
  return {
    bootFiles,
    releases,
    async [Symbol.asyncDispose]() {
      await releases[Symbol.asyncDispose]()
      await bootFiles[Symbol.asyncDispose]()
    },
  }
}
