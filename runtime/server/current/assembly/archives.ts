/** Current line: opens export bundles and backups of the state, for the server and for commands. */
import { accept } from '#kit/foundation/result.ts'
import { BackupJobSchema } from '#fleet/backup/backup-job.ts'
import { createBackupMaker } from '#fleet/backup/backup-maker.ts'
import { createRestorer } from '#fleet/backup/restore.ts'
import { openBackupStore } from '#fleet/backup/backup-store.ts'
import { createBackups, type Backups } from '#fleet/backup/backups.ts'
import { createBundles, type BundleRules, type Bundles } from '#fleet/backup/bundle-files.ts'
import { openJobRecords } from '#kit/host/job-records.ts'
import { createRecords } from '#kit/host/records.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import {
  buildBundle,
  contentOf,
  buildBundleMachine,
  importMachine,
  parseBundle,
  renderBundle,
  type BundleMachine,
} from '../rules/bundle.ts'
import type { Machine } from '../rules/machine.ts'
import { ORDERS, type State } from './state.ts'

const BUNDLE_RULES: BundleRules<Machine, BundleMachine> = {
  build: buildBundleMachine,
  render: (items, about) => renderBundle(buildBundle(items, about)),
  parse(text) {
    const parsed = parseBundle(text)
    return parsed.ok ? accept(contentOf(parsed.value)) : parsed
  },
  toMachine: importMachine,
  toHardware: ({ hw_lshw, hw_lshw_at }) =>
    hw_lshw === null || hw_lshw_at === null
      ? null
      : { json: JSON.stringify(hw_lshw), at: hw_lshw_at },
}

/** `version`: of this program. */
export const openBundles = ({ machines, templates, changes }: State, version: string): Bundles =>
  createBundles({ machines, templates, rules: BUNDLE_RULES, changes, version })

/** Only the owner of the database stores its jobs. Rejects with a Fault. */
export async function openBackups(
  config: LineConfig,
  state: State,
  version: string,
): Promise<Backups> {
  const { driver, driver_options: options } = config.current().backup
  const folders = decideFolders(config)
  const store = await openBackupStore({ driver, options, folder: folders.backups })
  const { database, journal, changes } = state
  const bundles = openBundles(state, version)
  return createBackups({
    store,
    maker: createBackupMaker({ database, bundles, store }),
    restorer: createRestorer({ database, bundles, store, orders: ORDERS }),
    journal,
    changes,
    settings: () => config.current().backup,
    // What a command finds beside a running server are that server's jobs.
    records: database.isOwner
      ? await openJobRecords(createRecords(folders.backupJobs), BackupJobSchema, new Date())
      : undefined,
  })
}
