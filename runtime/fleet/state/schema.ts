/** The tables of state.db and the marker of the release that wrote them. */
import { DatabaseSync } from 'node:sqlite'
import { readNumber, readText, type SqliteFile, openSqlite } from './sqlite.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { MEMBERSHIP_SQL } from './membership.ts'

/** Grows when a table changes its shape. */
export const SCHEMA = 8

export interface Marker {
  readonly release: string
  readonly line: string
  readonly schema: number
}

export const CARRIED = [
  'machines',
  'hardware',
  'settings',
  'templates',
  'channels',
  'boot_entries',
  'tokens',
  'people',
  'events',
  'runs',
  'run_logs',
  'batches',
  'batch_machines',
  'notify_receivers',
  'notify_messages',
  'change_count',
] as const

const TABLES = `
CREATE TABLE flasher_state (
  release TEXT NOT NULL,
  line TEXT NOT NULL,
  "schema" INTEGER NOT NULL
);
CREATE TABLE change_count (
  id TEXT PRIMARY KEY,
  count INTEGER NOT NULL
);
CREATE TABLE machines (
  mac TEXT PRIMARY KEY,
  record TEXT NOT NULL,
  last_seen_at TEXT,
  last_seen_ip TEXT
);
CREATE TABLE hardware (
  mac TEXT PRIMARY KEY,
  posted_at TEXT NOT NULL,
  tree BLOB NOT NULL
);
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE TABLE templates (
  name TEXT PRIMARY KEY,
  template TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE TABLE channels (
  name TEXT PRIMARY KEY,
  record TEXT NOT NULL
);
CREATE TABLE boot_entries (
  name TEXT PRIMARY KEY,
  record TEXT NOT NULL
);
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  record TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  revoked_at TEXT
);
CREATE TABLE people (
  id TEXT PRIMARY KEY,
  record TEXT NOT NULL,
  password TEXT,
  updated_at TEXT NOT NULL,
  removed_at TEXT
);
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  ts TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT,
  actor TEXT NOT NULL,
  source_ip TEXT,
  summary TEXT NOT NULL,
  details TEXT,
  alarm INTEGER NOT NULL,
  acknowledged INTEGER NOT NULL
);
CREATE TABLE runs (
  n INTEGER PRIMARY KEY,
  mac TEXT NOT NULL,
  id TEXT NOT NULL,
  began TEXT NOT NULL,
  result TEXT,
  image TEXT,
  image_ref TEXT,
  model TEXT,
  serial TEXT,
  actor TEXT,
  record TEXT NOT NULL,
  UNIQUE (mac, id)
);
CREATE INDEX runs_by_machine ON runs (mac, n);
CREATE INDEX runs_by_result ON runs (result, n);
CREATE INDEX runs_by_time ON runs (began);
CREATE TABLE run_logs (
  mac TEXT NOT NULL,
  id TEXT NOT NULL,
  posted_at TEXT NOT NULL,
  size INTEGER NOT NULL,
  log BLOB NOT NULL,
  PRIMARY KEY (mac, id)
);
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  made_at TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE TABLE batch_machines (
  batch TEXT NOT NULL,
  mac TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (batch, mac)
);
CREATE TABLE notify_receivers (
  id TEXT PRIMARY KEY,
  record TEXT NOT NULL,
  place INTEGER NOT NULL
);
CREATE TABLE notify_messages (
  id TEXT PRIMARY KEY,
  receiver TEXT NOT NULL,
  state TEXT NOT NULL,
  queued_at TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX notify_messages_by_receiver ON notify_messages (receiver, queued_at);
CREATE INDEX events_by_kind ON events (kind, id);
CREATE INDEX events_by_subject ON events (subject_id, id);
CREATE INDEX events_by_time ON events (ts);
CREATE INDEX events_unacknowledged ON events (id) WHERE alarm = 1 AND acknowledged = 0;
`

export function listOwnParts(): ReadonlyMap<string, string> {
  const model = new DatabaseSync(':memory:')
  try {
    model.exec(TABLES)
    const rows = model.prepare(`SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL`).all()
    return new Map(rows.map((row) => [readText(row, 'name'), readText(row, 'sql')]))
  } finally {
    model.close()
  }
}

/** In an empty file; part of the caller's transaction. */
export function writeSchema(file: SqliteFile, { release, line, schema }: Marker) {
  file.execute(TABLES)
  file.run(
    'INSERT INTO flasher_state (release, line, "schema") VALUES (?, ?, ?)',
    release,
    line,
    schema,
  )
}

type Found =
  | { readonly kind: 'empty' }
  | { readonly kind: 'marked'; readonly marker: Marker }
  /** Tables without our marker; `from`: what is known of the writer. */
  | { readonly kind: 'foreign'; readonly from: string }

export function readMarker(file: SqliteFile): Found {
  const tables = file.listTables()
  if (tables.length === 0) return { kind: 'empty' }
  const row = tables.includes('flasher_state')
    ? file.get('SELECT release, line, "schema" FROM flasher_state')
    : null
  if (row === null) return { kind: 'foreign', from: readForeign(file, tables) }
  const [release, line] = [readText(row, 'release'), readText(row, 'line')]
  return { kind: 'marked', marker: { release, line, schema: readNumber(row, 'schema') } }
}

/** The deployed ancestor kept its release in a table of its own. */
function readForeign(file: SqliteFile, tables: readonly string[]): string {
  const isAncestor = tables.includes('bty_version')
  const row = isAncestor ? file.get('SELECT version FROM bty_version') : null
  return row === null ? 'pre-versioning' : readText(row, 'version')
}

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
