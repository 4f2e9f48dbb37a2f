/** The tables that servers share: their rows as values, the names of their rows, and PostgreSQL's statements for them. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'

/** All of `state.db` except facts about the file itself. */
export const SHARED = [
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
] as const
type SharedName = (typeof SHARED)[number]

type RowCell = string | number | bigint | Uint8Array | null
export type RowCells = readonly RowCell[]

interface SharedColumn {
  readonly name: string
  readonly type: 'TEXT' | 'INTEGER' | 'BLOB'
  readonly isKey: boolean
}

export interface SharedTable {
  readonly name: SharedName
  readonly columns: readonly SharedColumn[]
}

export interface TableChange {
  readonly table: SharedTable
  readonly rows: readonly RowCells[]
  readonly removed: readonly RowCells[]
}

const TYPES = { TEXT: 'text', INTEGER: 'bigint', BLOB: 'bytea' } as const
export const SCHEMA_NAME = 'flasher'

export const keysOf = ({ columns }: SharedTable) => columns.filter(({ isKey }) => isKey)
export const keyOf = ({ columns }: SharedTable, row: RowCells): RowCells =>
  row.filter((_, at) => columns[at]?.isKey === true)
const listNames = (columns: readonly SharedColumn[]) => columns.map(({ name }) => name).join(', ')

/** PostgreSQL only keeps order and unique keys; SQLite has checked everything else. */
export const renderTable = (table: SharedTable): string => {
  const columns = table.columns.map(({ name, type }) => `${name} ${TYPES[type]}`)
  return `CREATE TABLE ${SCHEMA_NAME}.${table.name} (${columns.join(', ')}, PRIMARY KEY (${listNames(keysOf(table))}))`
}

const renderUpdates = (table: SharedTable): string => {
  const others = table.columns.filter(({ isKey }) => !isKey)
  return others.map(({ name }) => `${name} = excluded.${name}`).join(', ')
}

export const renderLocalSave = (table: SharedTable): string =>
  `INSERT INTO ${table.name} (${listNames(table.columns)}) VALUES (${table.columns.map(() => '?').join(', ')})
  ON CONFLICT (${listNames(keysOf(table))}) DO UPDATE SET ${renderUpdates(table)}`

export const renderLocalRemoval = (table: SharedTable): string =>
  `DELETE FROM ${table.name} WHERE ${keysOf(table)
    .map(({ name }) => `${name} = ?`)
    .join(' AND ')}`

export const renderLocalFind = (table: SharedTable): string =>
  `SELECT ${listNames(table.columns)} FROM ${table.name} WHERE ${keysOf(table)
    .map(({ name }) => `${name} = ?`)
    .join(' AND ')}`

interface PgStatement {
  readonly text: string
  readonly values: readonly unknown[]
}

const transpose = (columns: readonly SharedColumn[], rows: readonly RowCells[]) =>
  columns.map((_, at) => rows.map((row) => row[at] ?? null))

const renderArrays = (columns: readonly SharedColumn[], first: number): string =>
  columns.map(({ type }, at) => `$${first + at}::${TYPES[type]}[]`).join(', ')

/**
 * One statement, so one message and one transaction: a leader stopped on its way holds no lock.
 * `fence` is a table expression without rows if another server leads; then the rest finds nothing.
 * Its parameters come first.
 */
export function renderGroup(fence: PgStatement, changes: readonly TableChange[]): PgStatement {
  const parts = [fence.text]
  const values = [...fence.values]
  for (const { table, rows, removed } of changes) {
    const target = `${SCHEMA_NAME}.${table.name}`
    const keys = keysOf(table)
    if (removed.length > 0) {
      const gone = `unnest(${renderArrays(keys, values.length + 1)}) AS gone (${listNames(keys)})`
      const same = keys.map(({ name }) => `own.${name} = gone.${name}`).join(' AND ')
      parts.push(
        `removed_${table.name} AS (DELETE FROM ${target} AS own USING fence, ${gone} WHERE ${same})`,
      )
      values.push(...transpose(keys, removed))
    }
    if (rows.length > 0) {
      const names = listNames(table.columns)
      const fresh = `unnest(${renderArrays(table.columns, values.length + 1)}) AS fresh (${names})`
      const own = table.columns.map(({ name }) => `fresh.${name}`).join(', ')
      parts.push(
        `saved_${table.name} AS (INSERT INTO ${target} (${names}) SELECT ${own} FROM fence, ${fresh} WHERE true ON CONFLICT (${listNames(keys)}) DO UPDATE SET ${renderUpdates(table)})`,
      )
      values.push(...transpose(table.columns, rows))
    }
  }
  return { text: `WITH ${parts.join(',\n')}\nSELECT * FROM fence`, values }
}

/** The keys of changed rows, by table; null: every row of every table. */
export type ChangedKeys = ReadonlyMap<string, readonly RowCells[]> | null

const KeysSchema = z.record(z.string(), z.array(z.array(z.union([z.string(), z.number()]))))

export const renderKeys = (changes: readonly TableChange[]): string =>
  JSON.stringify(
    Object.fromEntries(
      changes.map(({ table, rows, removed }) => [
        table.name,
        [...rows.map((row) => keyOf(table, row)), ...removed],
      ]),
    ),
  )

/** In place of keys: the change replaced every row. */
export const ALL_KEYS = '*'

/** A server that lacks more rows reads everything. */
const MAX_KEYS = 100_000

export function createKeyList(most: number = MAX_KEYS) {
  const found = new Map<string, Map<string, RowCells>>()
  let count = 0
  return {
    /** False: read everything (a replacement, an unreadable change, or one too many). */
    add(text: string): boolean {
      const parsed = KeysSchema.safeParse(parseJson(text))
      if (!parsed.success) return false
      for (const [table, keys] of Object.entries(parsed.data)) {
        const known = found.get(table) ?? new Map<string, RowCells>()
        const before = known.size
        for (const key of keys) known.set(JSON.stringify(key), key)
        count += known.size - before
        found.set(table, known)
      }
      return count <= most
    },
    all: (): ReadonlyMap<string, readonly RowCells[]> =>
      new Map([...found].map(([table, keys]) => [table, [...keys.values()]])),
  }
}

export const renderRead = (table: SharedTable, keys: readonly RowCells[]): PgStatement => {
  const own = keysOf(table)
  const names = table.columns.map(({ name }) => `own.${name}`).join(', ')
  const same = own.map(({ name }) => `own.${name} = wanted.${name}`).join(' AND ')
  return {
    text: `SELECT ${names} FROM ${SCHEMA_NAME}.${table.name} AS own JOIN unnest(${renderArrays(own, 1)}) AS wanted (${listNames(own)}) ON ${same}`,
    values: transpose(own, keys),
  }
}

export const renderReadAll = (table: SharedTable): string =>
  `SELECT ${listNames(table.columns)} FROM ${SCHEMA_NAME}.${table.name}`

/** PostgreSQL cuts longer names. */
const MAX_RELEASE = 30

/** `flasher_1_4_0_20261121t065553z`, safe without quotes. `at`: an ISO time. */
export function renderFormerSchema(release: string, at: string): string {
  const safe = release
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '_')
    .slice(0, MAX_RELEASE)
  const stamp = `${at.slice(0, 19).replaceAll(/[-:]/g, '').toLowerCase()}z`
  return `${SCHEMA_NAME}_${safe || 'unknown'}_${stamp}`
}

/** What people may read in the shared database: rows hold records as text, which these show as columns. */
const WORD = `${SCHEMA_NAME}.word`

/** Records are text: PostgreSQL's JSON refuses some characters. Such a word is null here. */
const WORD_FUNCTION = `CREATE FUNCTION ${WORD} (record text, key text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN
    RETURN record::json ->> key;
  EXCEPTION WHEN others THEN
    RETURN NULL;
  END $$`

const words = (...names: readonly string[]) =>
  names.map((name) => `${WORD}(record, '${name}') AS ${name}`).join(', ')

export const PEOPLE_VIEWS: readonly string[] = [
  WORD_FUNCTION,
  `CREATE VIEW ${SCHEMA_NAME}.machine_list AS SELECT mac,
    ${words('name', 'labels', 'boot_mode', 'bty_image_ref', 'target_disk_serial', 'last_flashed_at')},
    last_seen_at, last_seen_ip FROM ${SCHEMA_NAME}.machines ORDER BY mac`,
  `CREATE VIEW ${SCHEMA_NAME}.run_list AS SELECT mac, id, began, result, image, model, serial, actor,
    ${words('reason', 'verified', 'bytes_written')} FROM ${SCHEMA_NAME}.runs ORDER BY n DESC`,
]
