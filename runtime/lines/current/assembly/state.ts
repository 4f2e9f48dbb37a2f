/** Current line: opens the database and everything stored in it, for the server or for one command. */
import { createDatabase, type Database } from '../../../services/state/database.ts'
import { createFeed, type Feed } from '../../../services/host/feed.ts'
import { createJournal, type Journal } from '../../../services/state/journal.ts'
import { createMachines, type Machines } from '../../../services/state/machines.ts'
import { createRuns, type Runs } from '../../../services/state/runs.ts'
import { createSettingsStore, type SettingsStore } from '../../../services/state/settings-store.ts'
import { prepareStateDir } from '../../../services/config/state-dirs.ts'
import { renderEmptyState } from '../../../services/state/opening.ts'
import { createTokens, type Tokens } from '../../../services/access/tokens.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import type { Machine } from '../rules/machine.ts'
import { parseRecord } from '../rules/record.ts'

export interface State extends AsyncDisposable {
  readonly database: Database
  readonly feed: Feed
  readonly machines: Machines<Machine>
  readonly journal: Journal
  readonly runs: Runs
  readonly tokens: Tokens
  readonly store: SettingsStore
}

interface StateOptions {
  readonly config: LineConfig
  readonly release: string
  /** A command beside the server, which may be running. */
  readonly visit: boolean
  readonly log: { warn(message: string): void }
}

/** Makes the state directory and the database where they are missing. */
export async function openState({ config, release, visit, log }: StateOptions): Promise<State> {
  await prepareStateDir(config.stateDir)
  const { retention } = config.current()
  const database = await createDatabase({
    path: decideFolders(config).database,
    release,
    line: 'current',
    visit,
    keepArchives: retention.bak_files,
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
      parseRecord,
      onUnreadable: (mac) => log.warn(`the record of ${mac} cannot be read; it is left as it is`),
    }),
    journal: createJournal(database, {
      feed,
      retention: () => {
        const { events, event_days: days } = config.current().retention
        return { count: events, days }
      },
    }),
    runs: createRuns(database, {
      feed,
      retention: () => {
        const { runs: count, run_days: days } = config.current().retention
        return { count, days }
      },
      patience: () => config.current().pxe.run_patience,
    }),
    tokens: createTokens(database),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
