/** Brings `state.db` to where the database is, from one moment of it. */
import { Fault } from '#kit/foundation/fault.ts'
import { NOWHERE, readMembership } from '#fleet/state/membership.ts'
import type { ClusterMembership } from '#fleet/state/rules/cluster-membership.ts'
import type { SqliteFile } from '#fleet/state/sqlite.ts'
import { applyChanges, listTables, replaceAll } from './local-rows.ts'
import { textOf, type PgRow, type PgSession } from './postgres.ts'
import { decideCatchUp, type LogEnds } from './rules/catch-up.ts'
import type { Position } from './rules/lease.ts'
import {
  createKeyList,
  renderRead,
  renderReadAll,
  SCHEMA_NAME,
  type RowCells,
  type ChangedKeys,
  type SharedTable,
  type TableChange,
} from './rules/shared-tables.ts'
import { readKeysSince, readLogEnds } from './tables.ts'

/** `accept-older`: takes what the database has, though it is older than `state.db`. */
export type Start = 'usual' | 'import' | 'accept-older'

/** The newest change and the rows must belong to one moment. */
const ONE_MOMENT = 'ISOLATION LEVEL REPEATABLE READ READ ONLY'

/**
 * Reads what `state.db` lacks, or everything if it follows no database yet. Rejects with a Fault
 * `input-invalid` if it belongs to another database, that one is older than it, or it has machines
 * that no database has.
 */
export async function catchUp(
  session: PgSession,
  file: SqliteFile,
  start: Start,
): Promise<Position> {
  const membership = readMembership(file)
  if (membership === null && start !== 'import') refuseOwnMachines(file)
  const tables = listTables(file)
  return await session.transact(ONE_MOMENT, async () => {
    const ends = await readLogEnds(session, membership?.seq ?? NOWHERE)
    const since = START[start](membership, ends)
    if (since === 'nothing') return ends.newest
    const keys = since === null ? null : await readKeys(session, since)
    const changes = await readChanges(session, tables, keys)
    // Until its orders are gone, a state that takes an older database is refused as before.
    const isKept = start === 'accept-older' && membership !== null
    const reached = isKept ? membership : { cluster: ends.cluster, ...ends.newest }
    file.transact(() => (keys === null ? replaceAll : applyChanges)(file, changes, reached))
    return ends.newest
  })
}

/** Sightings are no changes of the log: a copy has those of its records' last changes. */
export async function copySightings(session: PgSession, file: SqliteFile): Promise<void> {
  const rows = await session.query(
    `SELECT mac, last_seen_at AS at, last_seen_ip AS ip FROM ${SCHEMA_NAME}.machines WHERE last_seen_at IS NOT NULL AND last_seen_ip IS NOT NULL`,
  )
  file.transact(() => {
    for (const row of rows) {
      const [at, ip] = [textOf(row, 'at'), textOf(row, 'ip')]
      file.run(SEE_LATER, at, ip, textOf(row, 'mac'), at)
    }
  })
}

const SEE_LATER =
  'UPDATE machines SET last_seen_at = ?, last_seen_ip = ? WHERE mac = ? AND last_seen_at IS NOT ?'

type Since = (membership: ClusterMembership | null, ends: LogEnds) => number | null | 'nothing'

const START: Readonly<Record<Start, Since>> = {
  usual(membership, ends) {
    switch (decideCatchUp(membership, ends)) {
      case 'other-database':
        throw OTHER
      case 'older-database':
        throw OLDER
      case 'nothing':
        return 'nothing'
      case 'changes':
        return membership?.seq ?? null
      case 'everything':
        return null
    }
  },
  'accept-older': (membership, ends) =>
    decideCatchUp(membership, ends) === 'older-database' ? null : START.usual(membership, ends),
  import(membership, ends) {
    if (membership === null && ends.newest.seq === 0) return 'nothing'
    throw NOT_EMPTY
  },
}

/** The log keeps an hour: millions of changes in a large fleet. */
const PAGE_CHANGES = 1000

/** Null: everything; this server was away for longer than the log. */
async function readKeys(session: PgSession, since: number): Promise<ChangedKeys> {
  const list = createKeyList()
  let last = since
  for (;;) {
    const page = await readKeysSince(session, last, PAGE_CHANGES)
    if (!page.every(({ keys }) => list.add(keys))) return null
    last = page.at(-1)?.seq ?? last
    if (page.length < PAGE_CHANGES) return list.all()
  }
}

async function readChanges(
  session: PgSession,
  tables: readonly SharedTable[],
  keys: ChangedKeys,
): Promise<readonly TableChange[]> {
  const changes: TableChange[] = []
  for (const table of tables) {
    const wanted = keys === null ? null : (keys.get(table.name) ?? [])
    if (wanted?.length === 0) continue
    const { text, values } =
      wanted === null ? { text: renderReadAll(table), values: [] } : renderRead(table, wanted)
    const rows = (await session.query(text, values)).map((row) => readCells(table, row))
    // Keys without a row now; the present rows come right after.
    changes.push({ table, rows, removed: wanted ?? [] })
  }
  return changes
}

const readCells = (table: SharedTable, row: PgRow): RowCells =>
  table.columns.map(({ name }) => {
    const value = row[name] ?? null
    const isCell =
      value === null ||
      typeof value === 'string' ||
      typeof value === 'number' ||
      value instanceof Uint8Array
    if (isCell) return value
    throw new TypeError(`the database holds something else in ${table.name}.${name}`)
  })

function refuseOwnMachines(file: SqliteFile) {
  if (file.get('SELECT 1 AS n FROM machines LIMIT 1') === null) return
  throw new Fault('input-invalid', `${file.path} holds machines and belongs to no database yet`, {
    hint: 'flasher-web database import brings them into an empty database. To use what the database has instead, move the file away.',
  })
}

const NOT_EMPTY = new Fault(
  'input-invalid',
  'only a state that stands alone is imported, and only into a database that nothing was stored in',
  {
    hint: 'Use an empty database (createdb), or start the server with an empty state folder to use what this one has.',
  },
)

const OTHER = new Fault('input-invalid', 'this state belongs to another database', {
  hint: 'Correct database.url, or let the state stand alone first: flasher-web database detach.',
})

const OLDER = new Fault(
  'input-invalid',
  'the database is older than this state: changes that were acknowledged are not in it',
  {
    hint: 'Restore the newer database, or go on with what it has: flasher-web database accept-older, which disarms every machine.',
  },
)
