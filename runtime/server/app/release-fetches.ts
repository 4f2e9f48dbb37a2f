/** What fetching releases takes, whichever folder they come into. */
import type { ServerConfig } from '#kit/config/config.ts'
import { FetchJobSchema, type ReleaseSettings } from '#fleet/boot/releases.ts'
import { openJobRecords } from '#kit/host/jobs.ts'
import { createRecords } from '#kit/host/records.ts'
import type { Environment } from '#kit/host/shell.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import type { FleetState } from './machine-server.ts'

interface FetchDependencies {
  readonly config: ServerConfig
  readonly state: Pick<FleetState<never>, 'changes' | 'journal'>
  readonly folder: string
  /** Earlier sets to keep for a roll-back. */
  keep(): number
  readonly env: Environment
  now(): Date
}

/** For both lines. Fetches that an earlier process did not finish are listed as failed. */
export async function openFetchParts({ config, state, folder, keep, env, now }: FetchDependencies) {
  return {
    records: await openJobRecords(createRecords(folder), FetchJobSchema, now()),
    sources: createSources({ env }),
    journal: state.journal,
    changes: state.changes,
    settings(): ReleaseSettings {
      const { boot, releases } = config.current()
      return {
        site: releases.base_url,
        repository: boot.release_repo,
        keys: releases.public_keys,
        keep: keep(),
      }
    },
    env,
    now,
  }
}
