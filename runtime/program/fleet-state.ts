/** Opens the database of a machine server and everything stored in it, for the server or for one command. */
import type { MachineBase } from '../core/machine/machine.ts'
import { createDatabase } from '../services/state/database.ts'
import { createFeed } from '../services/host/feed.ts'
import { createJournal } from '../services/state/journal.ts'
import { createMachines } from '../services/state/machines.ts'
import { createRuns } from '../services/state/runs.ts'
import { createSettingsStore } from '../services/state/settings-store.ts'
import { prepareStateDir } from '../services/config/state-dirs.ts'
import { renderEmptyState } from '../services/state/opening.ts'
import { createTokens } from '../services/access/tokens.ts'
import type { Config } from '../services/config/config.ts'
import type { ServerSettings } from '../core/config/server-settings.ts'
import type { SettingsTable } from '../core/config/setting.ts'

export type FleetState<M extends MachineBase> = Awaited<ReturnType<typeof openFleetState<M>>>

interface StateOptions<M extends MachineBase> {
  readonly config: Pick<Config<SettingsTable>, 'stateDir' | 'useSaved' | 'readSaved' | 'listen'> & {
    current(): ServerSettings
  }
  /** Its name marks the file: one of the other line is refused. */
  readonly line: string
  parseRecord(stored: unknown): M | null
  readonly release: string
  /** A command beside the server, which may be running. */
  readonly visit: boolean
  readonly log: { warn(message: string): void }
}

/** Makes the state directory and the database where they are missing. */
export async function openFleetState<M extends MachineBase>(options: StateOptions<M>) {
  const { config, line, release, visit, log } = options
  const kept = () => config.current().retention
  await prepareStateDir(config.stateDir)
  const database = await createDatabase({
    path: `${config.stateDir}/state.db`,
    release,
    line,
    visit,
    keepArchives: kept().bak_files,
  })
  if (database.wasEmpty) log.warn(renderEmptyState(database.path))
  const feed = createFeed()
  const store = createSettingsStore(database, { feed })
  config.useSaved(store.list)
  feed.listen(({ topic }) => {
    if (topic === 'settings') config.readSaved()
  })
  config.listen(({ changed }) => {
    // Said again after the change is in effect: this time nothing changes, and it ends.
    if (changed.length > 0) feed.announce({ topic: 'settings' })
  })
  return {
    database,
    feed,
    store,
    machines: createMachines(database, {
      parseRecord: options.parseRecord,
      onUnreadable: (mac) => log.warn(`the record of ${mac} cannot be read; it is left as it is`),
    }),
    journal: createJournal(database, {
      feed,
      retention: () => ({ count: kept().events, days: kept().event_days }),
    }),
    runs: createRuns(database, {
      feed,
      retention: () => ({ count: kept().runs, days: kept().run_days }),
      patience: () => config.current().pxe.run_patience,
    }),
    tokens: createTokens(database),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
