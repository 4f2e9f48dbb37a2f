/** Opens the machine server of a line: what both lines give it, beside what a line brings. */
import { PUBLIC_PATH } from '#server/pages/settings/settings-list.ts'
import { fill } from '#kit/foundation/text.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { createPeople, createStanding } from '#fleet/access/accounts.ts'
import type { ServerSessions } from '#fleet/access/owner-rows.ts'
import { createTokens } from '#fleet/access/tokens.ts'
import { disarmAll, type OrderRules, renderDisarmed } from '#fleet/backup/disarming.ts'
import { createRuns } from '#fleet/run/runs.ts'
import { renderDoubt } from '#fleet/state/commits.ts'
import { createDatabase, type Database, renderEmptyState } from '#fleet/state/database.ts'
import { watchSpace } from '#fleet/state/disk-space.ts'
import { insertEvent, SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import { createJournal } from '#fleet/state/journal.ts'
import { createMachines } from '#fleet/state/machines.ts'
import { createSettingsStore } from '#fleet/state/settings-store.ts'
import type { ServerConfig } from '#kit/config/config.ts'
import type { ServerSettings } from '#kit/config/rules/shared-settings.ts'
import { prepareStateDir } from '#kit/config/state-dirs.ts'
import { createChanges } from '#kit/host/changes.ts'
import { pathOfUrl } from '#kit/net/rules/host-header.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import { createSecret, type Secret } from '#kit/web/access/secret.ts'
import { createSignedOut } from '#kit/web/access/session.ts'
import type { WebSettings } from '#kit/web/answers/caller.ts'
import { createInventories } from '#server/routes/inventories.ts'
import { createServer, type ServerOptions } from '#server/routes/server.ts'
import { type SharedDatabase, shareState } from './shared-state.ts'

interface ServerDependencies<M extends MachineBase> {
  readonly config: ServerConfig
  readonly state: FleetState<M>
  readonly log: ServerLog
  readonly release: string
  readonly folders: Readonly<Record<'stateDir' | 'secret' | 'signedOut', string>>
  now(): Date
}

type OwnService =
  | keyof FleetState<never>
  | 'inventories'
  | 'secret'
  | 'book'
  | 'settings'
  | 'now'
  | 'log'
  | 'version'

/**
 * Does not listen yet. Services that `open` adds to `opened` end with the server, last one first.
 * Rejects with a Fault where the session key cannot be read, and `no-leader` where it cannot be
 * stored for the other servers within 12 s.
 */
export async function openMachineServer<M extends MachineBase>(
  { config, state, log, release, folders, now }: ServerDependencies<M>,
  open: (
    secret: Secret,
    opened: AsyncDisposableStack,
  ) => Promise<Omit<ServerOptions<M>, OwnService>>,
) {
  await using opened = new AsyncDisposableStack()
  const { journal } = state
  const path = pathOfUrl(config.current().server.public_url)
  if (path !== '') log.warn(fill(PUBLIC_PATH, { path }))
  const configured = config.current().server.session_secret
  const secret = await createSecret({ path: folders.secret, configured })
  opened.use(
    watchSpace({
      path: folders.stateDir,
      journal,
      warnBelow: () => config.current().retention.warn_free_bytes,
      onLow: log.warn,
    }),
  )
  // The next leader has this key, so sessions made from here on hold there, too.
  await state.presence?.share()
  const server = createServer<M>({
    ...state,
    ...(await open(secret, opened)),
    inventories: opened.use(createInventories()),
    secret,
    book: await openBook(state, folders.signedOut, now),
    settings: config.derive(toWebSettings),
    now,
    log,
    version: release,
  })
  opened.defer(server.close)
  const held = opened.move()
  return {
    app: server.app,
    routes: server.routes,
    active: server.site.bootFiles.active,
    listeners: server.listeners,
    endChannels: server.close,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** In a state that may be an older copy, sessions that have ended since stay ended. */
async function openBook(
  { peopleStore, database, leader }: Pick<FleetState<never>, 'peopleStore' | 'database' | 'leader'>,
  path: string,
  now: () => Date,
): Promise<ServerSessions> {
  await peopleStore.openSessions(leader === null && database.doubt !== null)
  const { sessions } = peopleStore
  // A cache with the same state directory writes sessions that it logged out there.
  const list = createSignedOut({ path, now })
  return {
    ...sessions,
    admit: (session) => (list.has(session) ? undefined : sessions.admit(session)),
  }
}

/** What the settings of a machine server say of callers. */
export const toWebSettings = ({ server, pxe, tuning, metrics }: ServerSettings): WebSettings => ({
  publicUrl: server.public_url || null,
  allowedHosts: server.allowed_hosts,
  trustedProxies: server.trusted_proxies,
  discoveriesPerMinute: pxe.discovery_per_minute,
  mostUnassigned: pxe.discovery_rows,
  uploadMostBytes: tuning.max_upload_bytes,
  openMetrics: metrics.open,
})

export type FleetState<M extends MachineBase> = Awaited<ReturnType<typeof openFleetState<M>>>

interface FleetStateOptions<M extends MachineBase> {
  readonly config: ServerConfig
  /** Marks the file: a database of the other line is refused. */
  readonly line: string
  readonly orders: OrderRules<M>
  readonly release: string
  /** A command beside the server, which may be running. */
  readonly visit: boolean
  /** Leaves a damaged database to be replaced by a backup. */
  readonly replacesDamaged?: boolean
  readonly log: { warn(message: string): void }
  /** `[database]`; null: the state is opened apart from it. */
  readonly shared?: SharedDatabase | null
  readonly clock?: Clock
}

/**
 * Creates what is missing. Disarms the machines first where the state may be an older copy. Rejects
 * with a Fault where the directory cannot be used, or the database is damaged, of the other line,
 * or served by another process.
 */
export async function openFleetState<M extends MachineBase>(options: FleetStateOptions<M>) {
  const { config, line, release, visit, replacesDamaged = false, log } = options
  const { now, elapsed } = options.clock ?? HOST_CLOCK
  const kept = () => config.current().retention
  await prepareStateDir(config.stateDir)
  const database = await createDatabase({
    path: `${config.stateDir}/state.db`,
    release,
    line,
    visit,
    replacesDamaged,
    keepArchives: kept().bak_files,
    now,
  })
  if (database.wasEmpty) log.warn(renderEmptyState(database.path))
  const { leader, presence, memberKey } = (await shareState(database, options)) ?? ALONE
  // What the shared database has is the newest, whatever this file was.
  if (leader === null && options.shared !== null) await settleDoubt(database, options)
  const changes = createChanges()
  const tokens = createTokens(database, { now })
  const peopleStore = createPeople(database)
  const store = createSettingsStore(database, { changes })
  config.useSaved(store.list)
  changes.listen(() => config.readSaved(), ['settings'])
  config.listen(({ changed }) => {
    // This is announced again after the change; nothing changes then, and it ends.
    if (changed.length > 0) changes.announce({ topic: 'settings' })
  })
  return {
    database,
    /** Null: this server stands alone. */
    leader,
    /** Null: it stands alone, or this is a command. */
    presence,
    confirmRead: leader === null ? undefined : () => database.confirmRead(),
    /** `[database] key`; empty: not set. */
    memberKey,
    changes,
    store,
    machines: createMachines(database, {
      elapsed,
      parseRecord: options.orders.parseRecord,
      onUnreadable: (mac) => log.warn(`the record of ${mac} cannot be read and was not changed`),
    }),
    journal: createJournal(database, {
      changes,
      now,
      retention: () => ({ count: kept().events, days: kept().event_days }),
    }),
    runs: createRuns(database, {
      changes,
      now,
      elapsed,
      retention: () => ({ count: kept().runs, days: kept().run_days }),
      patience: () => config.current().pxe.run_patience,
    }),
    tokens,
    peopleStore,
    standing: createStanding({ people: peopleStore, tokens }),
    async [Symbol.asyncDispose]() {
      try {
        await database[Symbol.asyncDispose]()
      } finally {
        await presence?.end()
      }
    },
  }
}

const ALONE = { leader: null, presence: null, memberKey: '' }

/** A state that may be an older copy arms nothing; once disarmed, it counts as the newest. */
async function settleDoubt<M extends MachineBase>(
  database: Database,
  { orders, log }: Pick<FleetStateOptions<M>, 'orders' | 'log'>,
): Promise<void> {
  const { doubt } = database
  if (doubt === null) return
  if (database.sql.get('SELECT mac FROM machines LIMIT 1') === null) {
    await database.write(database.trust)
    return
  }
  const ts = new Date().toISOString()
  const summary = await database.write((sql) => {
    const disarmed = disarmAll(sql, orders, ts)
    database.trust(sql)
    const words = `${renderDoubt(database.path, doubt)}. ${renderDisarmed(disarmed) || NONE_ARMED}`
    const event = { ...SYSTEM_EVENT, ts, kind: 'system.state.disarmed', summary: words }
    insertEvent(sql, { ...event, details: { doubt, disarmed } })
    return words
  })
  log.warn(summary)
}

const NONE_ARMED = 'No machine was armed.'

export interface Clock {
  now(): Date
  /** Milliseconds, monotonic. */
  elapsed(): number
}

export const HOST_CLOCK: Clock = { now: () => new Date(), elapsed: () => performance.now() }
