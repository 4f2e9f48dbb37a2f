/** Opens the database of a machine server and everything stored in it, for the server or for one command. */
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { disarmAll, renderDisarmed, type OrderRules } from '#fleet/backup/disarming.ts'
import { renderDoubt } from '#fleet/state/change-counter.ts'
import { createDatabase, type Database } from '#fleet/state/database.ts'
import { insertEvent, SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import { createChanges } from '#kit/host/changes.ts'
import { createJournal } from '#fleet/state/journal.ts'
import { createMachines } from '#fleet/state/machines.ts'
import { createRuns } from '#fleet/run/runs.ts'
import { createSettingsStore } from '#fleet/state/settings-store.ts'
import { shareState, type SharedDatabase } from './shared-state.ts'
import { prepareStateDir } from '#kit/config/state-dirs.ts'
import { renderEmptyState } from '#fleet/state/opening.ts'
import { createStanding } from '#fleet/access/standing.ts'
import { createPeople } from '#fleet/access/accounts.ts'
import { createTokens } from '#fleet/access/tokens.ts'
import type { ServerConfig } from '#kit/config/config.ts'

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
      onUnreadable: (mac) => log.warn(`the record of ${mac} cannot be read; it is left as it is`),
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

// The clocks of a machine server.

export interface Clock {
  now(): Date
  /** Milliseconds, monotonic. */
  elapsed(): number
}

export const HOST_CLOCK: Clock = { now: () => new Date(), elapsed: () => performance.now() }
