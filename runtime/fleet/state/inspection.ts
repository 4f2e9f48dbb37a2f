/** Checks whether a file is a database that this program can use. */
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { MEMBERSHIP_SQL } from './membership.ts'
import { CARRIED, listOwnParts, readMarker, SCHEMA, type Marker } from './schema.ts'
import { openSqlite, readNumber, readText, type SqliteFile } from './sqlite.ts'

/** Blocks the event loop. Throws a Fault for a damaged, foreign, too new or other line's file. */
export function inspectState(path: string, line: string): Marker {
  using file = openSqlite(path)
  const damage = file.findDamage('integrity_check')
  if (damage !== null) throw refused(`it is damaged: ${damage}`)
  const found = readMarker(file)
  if (found.kind !== 'marked') throw refused('it was not written by this program')
  const { marker } = found
  if (marker.line !== line) throw refused(`it belongs to the ${marker.line} release line`)
  if (marker.schema > SCHEMA) throw refused(`release ${marker.release} is newer than this one`)
  checkParts(file, marker)
  for (const table of CARRIED) checkValues(file, table)
  // A rename follows: nothing may be left beside the file.
  file.fold()
  return marker
}

/** Foreign views or triggers would act when the server reads or writes. */
function checkParts(file: SqliteFile, { schema }: Marker) {
  const own = listOwnParts()
  const found = file.all(
    "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
  )
  for (const row of found) {
    const [type, name, sql] = [readText(row, 'type'), readText(row, 'name'), readText(row, 'sql')]
    const isTable = type === 'table' && !/^CREATE VIRTUAL/i.test(sql)
    if (!isTable && type !== 'index') {
      throw refused(`it has a ${type} named ${printable(name)}, which this program never makes`)
    }
    // An older file is carried over into new tables.
    if (schema === SCHEMA && own.get(name) !== sql && sql !== MEMBERSHIP_SQL) {
      throw refused(`its ${type} ${printable(name)} is not one that this release works with`)
    }
  }
  const names = new Set(found.map((row) => readText(row, 'name')))
  const wanted = schema === SCHEMA ? [...own.keys()] : ['machines']
  const missing = wanted.find((name) => !names.has(name))
  if (missing !== undefined) throw refused(`it has no ${missing}`)
}

/** SQLite takes any value in any column; the server relies on the column's type. */
function checkValues(file: SqliteFile, table: string) {
  for (const row of file.all(`PRAGMA table_info(${table})`)) {
    const column = readText(row, 'name')
    const kinds = [`'${readText(row, 'type').toLowerCase()}'`]
    if (readNumber(row, 'notnull') === 0 && readNumber(row, 'pk') === 0) kinds.push("'null'")
    const wrong = `SELECT 1 AS n FROM ${table} WHERE typeof("${column}") NOT IN (${kinds.join(', ')}) LIMIT 1`
    if (file.get(wrong) !== null) {
      throw refused(`its table ${table} holds something else than it should in column ${column}`)
    }
  }
}

const refused = (why: string) =>
  new Fault('input-invalid', `the database cannot be used: ${why}`, {
    hint: 'Nothing was changed.',
  })
