/** Backups of a real state in a temporary folder, as the server assembles them. */
import { join } from 'node:path'
import type { BackupSettings } from '#fleet/backup/rules/backup.ts'
import { accept } from '#kit/foundation/result.ts'
import {
  buildBundle,
  buildBundleMachine,
  contentOf,
  importMachine,
  parseBundle,
  renderBundle,
  type BundleMachine,
} from '#server/current/commands/rules/bundle.ts'
import { ORDERS } from '#server/current/assembly/state.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { BackupJobSchema } from '#fleet/backup/backup-job.ts'
import { createBackupMaker, createBundles, type BundleRules } from '#fleet/backup/backup-maker.ts'
import { createRestorer } from '#fleet/backup/restore.ts'
import { openBackupStore, type BackupStorage } from '#fleet/backup/backup-store.ts'
import { createBackups } from '#fleet/backup/backups.ts'
import { createTemplates } from '#fleet/first-boot/templates.ts'
import { openJobRecords } from '#kit/host/jobs.ts'
import { createRecords } from '#kit/host/records.ts'
import type { DatabaseOptions } from '#fleet/state/database.ts'
import {
  AT,
  machineOf,
  macOf,
  makeToken,
  RELEASE,
  type StateFolder,
  type StateServices,
} from './state.ts'

const RULES: BundleRules<Machine, BundleMachine> = {
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

export const BY = { actor: 'operator', ip: '192.0.2.7' } as const

export interface BackupDeskOptions {
  readonly place?: Partial<BackupStorage>
  readonly database?: Partial<DatabaseOptions>
  readonly now?: () => Date
  /** Folder of the jobs' records; none unless said. */
  readonly records?: string
  /** What happens when everything of a backup is stored but its manifest. */
  readonly beforeFinish?: (id: string) => void
}

export const bundlesOf = (state: StateServices, now = () => new Date()) =>
  createBundles({
    ...state,
    templates: createTemplates(state.database),
    rules: RULES,
    version: RELEASE,
    now,
  })

/** State and backups over an existing folder; `settings` can be changed. */
export async function openBackupFixture(
  folder: StateFolder,
  { place, database, now = () => new Date(), records, beforeFinish }: BackupDeskOptions = {},
) {
  const state = await folder.open({ now, ...database })
  const backupDir = join(folder.dir, 'backups')
  const where = { driver: 'fs', folder: backupDir, options: {}, ...place }
  const store = await openBackupStore(where, now)
  const bundles = bundlesOf(state, now)
  const settings: { current: BackupSettings } = {
    current: { enabled: false, cadence: 'manual', retention: 7 },
  }
  const backups = createBackups({
    store,
    maker: createBackupMaker({
      database: state.database,
      bundles,
      store: {
        ...store,
        finish(manifest) {
          beforeFinish?.(manifest.backup_id)
          return store.finish(manifest)
        },
      },
    }),
    restorer: createRestorer({ database: state.database, bundles, store, orders: ORDERS, now }),
    journal: state.journal,
    changes: state.changes,
    settings: () => settings.current,
    now,
    records:
      records === undefined
        ? undefined
        : await openJobRecords(createRecords(records), BackupJobSchema, now()),
  })
  return {
    ...state,
    bundles,
    backups,
    backupDir,
    backupStore: store,
    settings,
    async backUp() {
      const { backup_id } = await backups.start('manual', BY)
      return await backups.awaitEnd(backup_id)
    },
    kinds: async () =>
      (await state.journal.list({ limit: 100 })).map(({ kind }) => kind).toReversed(),
    async [Symbol.asyncDispose]() {
      await backups[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
    },
  }
}

export type BackupFixture = Awaited<ReturnType<typeof openBackupFixture>>

/** Machines with everything that a backup must bring back. */
export async function populate({ machines, store, tokens }: StateServices, count = 3) {
  for (let n = 1; n <= count; n += 1) {
    await machines.update(macOf(n), () =>
      machineOf(n, {
        boot_mode: 'flasher-flash-once',
        bty_image_ref: 'b'.repeat(64),
        labels: [`rack-${n}`],
        target_disk_serial: `S${n}`,
        known_disks_at: '2026-11-21T06:55:53Z',
        known_disks: [
          {
            path: '/dev/sda',
            size: '500G',
            vendor: 'Ä"\\',
            model: null,
            serial: `S${n}`,
            tran: 'sata',
            removable: false,
            readonly: false,
          },
        ],
      }),
    )
    await machines.saveHardware(macOf(n), JSON.stringify({ id: `box-${n}`, children: [] }), AT)
  }
  await store.save({ 'upstream.netboot_tag': 'v1' })
  return makeToken(tokens, { name: 'ci', scopes: ['flash'], expires_at: null })
}
