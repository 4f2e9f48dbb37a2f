/** Current line: opens the database and everything stored in it, for the server or for one command. */
import { type FleetState, openFleetState } from '#server/app/machine-server.ts'
import type { SharedDatabase } from '#server/app/shared-state.ts'
import { createBatches, type Batches } from '#fleet/batch/batches.ts'
import type { OrderRules } from '#fleet/backup/disarming.ts'
import { createMessages, type Messages } from '#fleet/notify/messages.ts'
import { createReceivers, type Receivers } from '#fleet/notify/receivers.ts'
import { createChannels, type Channels } from '#fleet/channel/channels.ts'
import { createEntries, type Entries } from '#fleet/once/entries.ts'
import { createTemplates, type Templates } from '#fleet/first-boot/templates.ts'
import { decideFolders, findPasswordOrigin, type LineConfig } from './configuration.ts'
import { type Machine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { disarm, keepHeldBack, nameMachine } from '#server/current/machines/rules/disarming.ts'
import { describe } from '#server/current/machines/rules/machine-events.ts'
import { accept } from '#kit/foundation/result.ts'
import { BackupJobSchema } from '#fleet/backup/backup-job.ts'
import {
  createBackupMaker,
  createBundles,
  type BundleRules,
  type Bundles,
} from '#fleet/backup/backup-maker.ts'
import { createRestorer } from '#fleet/backup/restore.ts'
import { openBackupStore } from '#fleet/backup/backup-store.ts'
import { createBackups, type Backups } from '#fleet/backup/backups.ts'
import { openJobRecords } from '#kit/host/jobs.ts'
import { createRecords } from '#kit/host/records.ts'
import {
  buildBundle,
  contentOf,
  buildBundleMachine,
  importMachine,
  parseBundle,
  renderBundle,
  type BundleMachine,
} from '#server/current/commands/rules/bundle.ts'

export interface State extends FleetState<Machine> {
  readonly templates: Templates
  readonly channels: Channels
  readonly entries: Entries
  readonly batches: Batches
  readonly receivers: Receivers
  readonly messages: Messages
}

/** What a restored older database may not do. */
export const ORDERS: OrderRules<Machine> = {
  parseRecord,
  disarm,
  keepHeldBack,
  nameOf: nameMachine,
  describe,
}

interface StateOptions extends Pick<
  Parameters<typeof openFleetState>[0],
  'release' | 'visit' | 'replacesDamaged' | 'log' | 'clock'
> {
  readonly config: LineConfig
  /** For the server: ends its wait for the lease, and hears that it lost it. */
  readonly leads?: Pick<SharedDatabase, 'signal' | 'onEnd' | 'standBy' | 'times'>
  /** `apart`: without the shared database, even if the state belongs to it. */
  readonly start?: SharedDatabase['start'] | 'apart'
}

/** Creates what is missing. Rejects as `openFleetState` does. */
export async function openState({ leads, start, ...options }: StateOptions): Promise<State> {
  const shared = start === 'apart' ? null : describeShared(options.config, leads, start)
  const state = await openFleetState({ ...options, line: 'current', orders: ORDERS, shared })
  const { database, changes } = state
  return {
    ...state,
    templates: createTemplates(database),
    channels: createChannels(database),
    entries: createEntries(database),
    batches: createBatches(database, { changes }),
    receivers: createReceivers(database),
    messages: createMessages(database),
  }
}

export function describeShared(
  config: LineConfig,
  leads?: StateOptions['leads'],
  start: SharedDatabase['start'] = 'usual',
): SharedDatabase {
  const { database } = config.current()
  return {
    url: database.url,
    passwordFile: database.password_file,
    key: database.key,
    keyFile: database.key_file,
    files: listSharedFiles(config),
    notes: decideFolders(config).cluster,
    facts: () => describeMember(config),
    patience: leads === undefined ? 'now' : 'wait',
    // A command ends soon, and its next change is refused.
    onEnd: () => undefined,
    start,
    ...leads,
  }
}

/** Secrets in the configuration are not shared as files. */
function listSharedFiles(config: LineConfig): SharedDatabase['files'] {
  const { secret, password, power, notify } = decideFolders(config)
  return {
    ...(config.current().server.session_secret === '' ? { 'session-secret': secret } : {}),
    ...(findPasswordOrigin(config) === null ? { 'admin-password': password } : {}),
    power,
    notify,
  }
}

/** Each server has its own, as with the addresses of its cache. */
const OWN_SECTIONS: ReadonlySet<string> = new Set(['server', 'paths', 'log', 'database', 'cache'])

function describeMember(config: LineConfig): ReturnType<SharedDatabase['facts']> {
  const { backup } = config.current()
  const compared = config
    .list()
    .filter(({ section, origin }) => !OWN_SECTIONS.has(section) && origin.by !== 'settings-page')
  return {
    settings: Object.fromEntries(compared.map(({ name, shown }) => [name, shown])),
    backups: backup.driver === 'fs' ? decideFolders(config).backups : backup.driver,
  }
}

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
