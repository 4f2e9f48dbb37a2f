/** The side of `state.db` in a group: done and undone, then stored once the database has it. */
import { renderError } from '#kit/foundation/fault.ts'
import { NOWHERE, writeMembership } from '#fleet/state/membership.ts'
import {
  attemptUnit,
  type CommitsDependencies,
  type SeenMachine,
  type Unit,
} from '#fleet/state/commits.ts'
import { explainSqlite, type SqliteFile } from '#fleet/state/sqlite.ts'
import type { Leader } from './leader.ts'
import { applyChanges, listTables, watchRows, readParts, readTouched } from './local-rows.ts'
import type { Position } from './rules/lease.ts'
import type { SharedTable, TableChange } from './rules/shared-tables.ts'

export interface LocalDependencies extends CommitsDependencies {
  readonly leader: Leader
  /** Noted with each group's position. */
  readonly cluster: string
  readonly log: { warn(message: string): void }
}

export interface Waiting {
  readonly unit: Unit
  readonly since: number
  hasFailed: boolean
}

const RETRY_MS = 1000

export function createLocalState({ current, finish, leader, cluster, log }: LocalDependencies) {
  const tables: readonly SharedTable[] = listTables(current())
  let prepared: SqliteFile | null = null

  /** After a restore it is another file. */
  function file(): SqliteFile {
    const present = current()
    if (present !== prepared) watchRows(present, tables)
    prepared = present
    return present
  }

  return {
    /** Does units, reads their changes, and undoes them: nobody may read what can still fail. */
    rehearse(units: readonly Waiting[]) {
      const present = file()
      const done: (() => void)[] = []
      const changes = present.rehearse(() => {
        present.execute(FORGET)
        for (const each of units) {
          const fail = (thrown: unknown) => {
            each.hasFailed = true
            each.unit.fail(thrown)
          }
          attemptUnit(present, { perform: each.unit.perform, fail }, done)
        }
        return readTouched(present, tables)
      })
      return { changes, done }
    },
    /** The database has it, so this is repeated until the disk takes it, too. */
    async store(changes: readonly TableChange[], position: Position): Promise<void> {
      const membership = { cluster, ...position }
      for (let isTold = false; ; isTold = true) {
        try {
          const present = file()
          present.transact(() => {
            applyChanges(present, changes, membership)
            finish(present)
            present.execute(FORGET)
          })
          return
        } catch (thrown) {
          if (leader.ended() !== null) throw thrown
          const why = renderError(explainSqlite(thrown, current().path))
          if (!isTold) log.warn(`${why}: the database has this change, and all others wait`)
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
        }
      }
    },
    see(batch: readonly SeenMachine[]): void {
      const present = file()
      present.transact(() => {
        for (const { mac, at, ip } of batch) present.run(SEE, at, ip, mac)
        present.execute(FORGET)
      })
    },
    /** After this file was replaced: the database gets its rows. */
    async share(): Promise<void> {
      // If this process ends now, the next one reads the database as before.
      writeMembership(current(), { cluster, seq: NOWHERE, change: '' })
      const position = await leader.replaceAll(tables, (table) => readParts(current(), table))
      writeMembership(current(), { cluster, ...position })
    },
  }
}

const FORGET = 'DELETE FROM temp.touched'
const SEE = 'UPDATE machines SET last_seen_at = ?, last_seen_ip = ? WHERE mac = ?'
