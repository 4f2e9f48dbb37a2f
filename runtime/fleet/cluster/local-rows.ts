/** What a group changed in `state.db`, and the same changes put into it: the side of SQLite. */
import { Fault } from '#kit/foundation/fault.ts'
import { writeMembership } from '#fleet/state/membership.ts'
import { readNumber, readText, type SqliteFile } from '#fleet/state/sqlite.ts'
import type { ClusterMembership } from '#fleet/state/rules/change-count.ts'
import {
  keyOf,
  keysOf,
  renderLocalFind,
  renderLocalRemoval,
  renderLocalSave,
  SHARED,
  type RowCells,
  type SharedTable,
  type TableChange,
} from './rules/shared-tables.ts'

export const listTables = (file: SqliteFile): readonly SharedTable[] =>
  SHARED.map((name) => ({
    name,
    columns: file.all(`PRAGMA table_info(${name})`).map((row) => {
      const type = readText(row, 'type')
      if (type !== 'TEXT' && type !== 'INTEGER' && type !== 'BLOB') {
        throw new TypeError(`${name} has a column of another kind: ${type}`)
      }
      return { name: readText(row, 'name'), type, isKey: readNumber(row, 'pk') > 0 }
    }),
  }))

/** SQLite notes keys in a table of this connection alone; undone changes are not noted. */
export function watchRows(file: SqliteFile, tables: readonly SharedTable[]): void {
  file.execute(
    'CREATE TEMP TABLE IF NOT EXISTS touched (name TEXT, first, second, UNIQUE (name, first, second))',
  )
  for (const table of tables) {
    for (const [event, row] of [
      ['INSERT', 'NEW'],
      ['UPDATE', 'NEW'],
      ['DELETE', 'OLD'],
    ] as const) {
      const keys = keysOf(table).map(({ name }) => `${row}.${name}`)
      // Empty rather than NULL, which is equal to nothing. `OR IGNORE` would not do: in a trigger the
      // conflict clause of the statement that fired it counts, and an upsert has ABORT.
      const [first, second = "''"] = keys
      file.execute(
        `CREATE TEMP TRIGGER IF NOT EXISTS ${table.name}_${event} AFTER ${event} ON main.${table.name}
         BEGIN INSERT INTO touched SELECT '${table.name}', ${first}, ${second} WHERE NOT EXISTS (
         SELECT 1 FROM touched WHERE name = '${table.name}' AND first = ${first} AND second = ${second}); END`,
      )
    }
  }
}

/** Part of the running transaction. Throws a Fault for text that only SQLite takes. */
export function readTouched(
  file: SqliteFile,
  tables: readonly SharedTable[],
): readonly TableChange[] {
  const touched = file.all('SELECT name, first, second FROM temp.touched')
  return tables.flatMap((table) => {
    const width = keysOf(table).length
    const rows: RowCells[] = []
    const removed: RowCells[] = []
    for (const { name, first = null, second = null } of touched) {
      if (name !== table.name) continue
      const key = [first, second].slice(0, width)
      const row = file.get(renderLocalFind(table), ...key)
      if (row === null) removed.push(key)
      else rows.push(checkCells(table.columns.map((column) => row[column.name] ?? null)))
    }
    return rows.length + removed.length === 0 ? [] : [{ table, rows, removed }]
  })
}

/** The database would refuse the whole group. */
function checkCells(cells: RowCells): RowCells {
  if (!cells.some((cell) => typeof cell === 'string' && cell.includes('\0'))) return cells
  throw new Fault('input-invalid', 'the database cannot store a text with a NUL character', {
    hint: 'Nothing of this change was stored.',
  })
}

/** Also notes the position; part of the caller's transaction. */
export function applyChanges(
  file: SqliteFile,
  changes: readonly TableChange[],
  membership: ClusterMembership,
): void {
  // First: a row may take over a unique value from a removed one.
  for (const { table, removed } of changes) {
    for (const key of removed) file.run(renderLocalRemoval(table), ...key)
  }
  for (const { table, rows } of changes) {
    for (const row of rows) file.run(renderLocalSave(table), ...row)
  }
  writeMembership(file, membership)
}

export function replaceAll(
  file: SqliteFile,
  changes: readonly TableChange[],
  membership: ClusterMembership,
): void {
  for (const { table } of changes) file.run(`DELETE FROM ${table.name}`)
  applyChanges(file, changes, membership)
}

export function* readParts(file: SqliteFile, table: SharedTable): Generator<readonly RowCells[]> {
  const keys = keysOf(table).map(({ name }) => name)
  const names = table.columns.map(({ name }) => name)
  const text = `SELECT ${names.join(', ')} FROM ${table.name}`
  const order = `ORDER BY ${keys.join(', ')} LIMIT ${PART}`
  const after = `WHERE (${keys.join(', ')}) > (${keys.map(() => '?').join(', ')})`
  for (let last: RowCells | null = null; ;) {
    const found =
      last === null ? file.all(`${text} ${order}`) : file.all(`${text} ${after} ${order}`, ...last)
    const rows = found.map((row) => checkCells(names.map((name) => row[name] ?? null)))
    const newest = rows.at(-1)
    if (newest === undefined) return
    yield rows
    last = keyOf(table, newest)
  }
}

const PART = 500
