/** The tables in PostgreSQL, and their one row that says who leads. */
import { randomUUID } from 'node:crypto'
import { writeMembership } from '#fleet/state/membership.ts'
import type { ClusterMembership } from '#fleet/state/rules/change-count.ts'
import { SCHEMA } from '#fleet/state/schema.ts'
import { readNumber, readText, type SqliteFile } from '#fleet/state/sqlite.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { type Member, MEMBER_TABLE } from './members.ts'
import { numberIn, type PgRow, type PgSession, textOf } from './postgres.ts'
import type { LeaseReading, LogEnds, Position } from './rules/lease.ts'
import type { NetbootRow } from './rules/shared-netboot.ts'
import {
  keyOf,
  keysOf,
  PEOPLE_VIEWS,
  renderLocalFind,
  renderLocalRemoval,
  renderLocalSave,
  renderTable,
  type RowCells,
  SCHEMA_NAME,
  SHARED,
  type SharedTable,
  type TableChange,
} from './rules/shared-tables.ts'
import { SECRET_TABLE } from './secret-rows.ts'

const NETBOOT = `${SCHEMA_NAME}.netboot`
const NETBOOT_TABLE = `CREATE TABLE IF NOT EXISTS ${NETBOOT} (one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version text NOT NULL, content text NOT NULL)`

export async function readNetbootRow(session: PgSession): Promise<NetbootRow | null> {
  const [row] = await session.repeat(`SELECT version, content FROM ${NETBOOT}`, [])
  if (row === undefined) return null
  return { version: textOf(row, 'version'), content: textOf(row, 'content') }
}

/** `before` null: no row yet. False: another server was quicker, or leads. */
export async function writeNetbootRow(
  session: PgSession,
  { version, content }: NetbootRow,
  { before, epoch }: { readonly before: string | null; readonly epoch: number },
): Promise<boolean> {
  const values = [version, content, epoch, ...(before === null ? [] : [before])]
  const written = await session.query(before === null ? ADD : REPLACE, values)
  return written.length === 1
}

const IS_LED = `EXISTS (SELECT 1 FROM ${SCHEMA_NAME}.lease WHERE epoch = $3::bigint FOR SHARE)`
const ADD = `INSERT INTO ${NETBOOT} (version, content) SELECT $1::text, $2::text WHERE ${IS_LED}
  ON CONFLICT (one) DO NOTHING RETURNING version`
const REPLACE = `UPDATE ${NETBOOT} SET version = $1, content = $2
  WHERE version = $4 AND ${IS_LED} RETURNING version`

export interface Lease extends LeaseReading {
  readonly cluster: string
  readonly seq: number
  /** How often the leader has changed. */
  readonly epoch: number
  /** All servers must have this line and shape of tables. */
  readonly line: string
  readonly schema: number
  readonly release: string
  /** ISO time of the database. */
  readonly since: string
  readonly url: string
}

const LEASE = `${SCHEMA_NAME}.lease`
const CHANGE = `${SCHEMA_NAME}.change`

const OWN_TABLES = [
  `CREATE TABLE ${LEASE} (one boolean PRIMARY KEY DEFAULT true CHECK (one), cluster text NOT NULL,
    line text NOT NULL, "schema" integer NOT NULL, term text NOT NULL, epoch bigint NOT NULL,
    seq bigint NOT NULL, beat bigint NOT NULL, holder text NOT NULL, release text NOT NULL,
    url text NOT NULL, since timestamptz NOT NULL DEFAULT now())`,
  `CREATE TABLE ${CHANGE} (seq bigint PRIMARY KEY, id text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(), keys text NOT NULL)`,
  `CREATE INDEX change_by_time ON ${CHANGE} (at)`,
  MEMBER_TABLE,
  SECRET_TABLE,
  NETBOOT_TABLE,
]

/** Two servers that make the tables at once wait for each other. */
const ONE_MAKES = 'SELECT pg_advisory_xact_lock(1718382451, 2)'

export async function hasTables(session: PgSession): Promise<boolean> {
  const [found] = await session.query(`SELECT to_regclass('${LEASE}')::text AS name`)
  return found?.['name'] !== null
}

/** With the views, without rows; part of the caller's transaction. */
export async function createTables(
  session: PgSession,
  tables: readonly SharedTable[],
): Promise<void> {
  await session.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA_NAME}`)
  for (const text of [...OWN_TABLES, ...tables.map(renderTable), ...PEOPLE_VIEWS])
    await session.query(text)
}

/** The next leader upgrades such tables. */
export const isOlderShape = ({ schema }: Pick<Lease, 'schema'>): boolean => schema < SCHEMA

/** Rejects with a Fault if they are of another line, or newer. */
export async function ensureTables(
  session: PgSession,
  line: string,
  tables: readonly SharedTable[],
): Promise<void> {
  if (!(await hasTables(session))) {
    await session.transact('', async () => {
      await session.query(ONE_MAKES)
      if (await hasTables(session)) return
      await createTables(session, tables)
      await session.query(
        `INSERT INTO ${LEASE} (cluster, line, "schema", term, epoch, seq, beat, holder, release, url)
         VALUES ($1, $2, $3, $4, 0, 0, 0, '', '', '')`,
        [randomUUID(), line, SCHEMA, randomUUID()],
      )
      await session.query(`INSERT INTO ${CHANGE} (seq, id, keys) VALUES (0, $1, '{}')`, [
        randomUUID(),
      ])
    })
  }
  checkShape(await readLease(session), line)
  await addNetboot(session)
}

/** Tables of this shape may be older than this table. */
async function addNetboot(session: PgSession): Promise<void> {
  const [found] = await session.query(`SELECT to_regclass('${NETBOOT}')::text AS name`)
  if (found?.['name'] !== null) return
  await session.transact('', async () => {
    await session.query(ONE_MAKES)
    await session.query(NETBOOT_TABLE)
  })
}

/** Throws a Fault `input-invalid` for another line or a newer release. */
export function checkShape(lease: Pick<Lease, 'line' | 'schema' | 'release'>, line: string): void {
  if (lease.line !== line) {
    throw new Fault(
      'input-invalid',
      `the database belongs to the ${lease.line} release line; this is the ${line} line`,
      { hint: 'Give this line a separate database.' },
    )
  }
  if (lease.schema > SCHEMA) {
    throw new Fault(
      'input-invalid',
      `the tables in the database are of shape ${lease.schema} (release ${lease.release}); this release works with shape ${SCHEMA}`,
      { hint: 'Start that release, or a newer one.' },
    )
  }
}

const COLUMNS = `cluster, line, "schema", term, epoch, seq, beat, holder, release, url,
  to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since`

export async function readLease(session: PgSession): Promise<Lease> {
  const [row] = await session.query(`SELECT ${COLUMNS} FROM ${LEASE}`)
  return toLease(row)
}

const toLease = (row: PgRow | undefined): Lease => ({
  cluster: textOf(row, 'cluster'),
  line: textOf(row, 'line'),
  schema: numberIn(row, 'schema'),
  term: textOf(row, 'term'),
  epoch: numberIn(row, 'epoch'),
  seq: numberIn(row, 'seq'),
  beat: numberIn(row, 'beat'),
  holder: textOf(row, 'holder'),
  release: textOf(row, 'release'),
  url: textOf(row, 'url'),
  since: textOf(row, 'since'),
})

/** Differs for each leader, so that no former one holds its claim. */
const leaderLockOf = (epoch: string) =>
  `pg_try_advisory_lock(1718382452, (${epoch} % 2147483647)::int)`

/** An advisory lock of the leader's session: others get it once that session has ended. */
export async function tryLeaderLock(session: PgSession, epoch: number): Promise<boolean> {
  const [row] = await session.query(`SELECT ${leaderLockOf('$1::bigint')} AS taken`, [epoch])
  return row?.['taken'] === true
}

export interface TakenLease {
  readonly epoch: number
  /** False: somebody had it before us; then it is taken anew. */
  readonly holdsLeaderLock: boolean
}

/** Null: somebody else was quicker. */
export async function takeLease(
  session: PgSession,
  seen: LeaseReading,
  term: string,
  { name, release, url }: Omit<Member, 'id'>,
): Promise<TakenLease | null> {
  const [taken] = await session.query(
    `UPDATE ${LEASE} SET term = $1, epoch = epoch + 1, beat = beat + 1, holder = $2, release = $3,
     url = $4, since = now() WHERE term = $5 AND beat = $6
     RETURNING epoch, ${leaderLockOf('epoch')} AS taken`,
    [term, name, release, url, seen.term, seen.beat],
  )
  if (taken === undefined) return null
  return { epoch: numberIn(taken, 'epoch'), holdsLeaderLock: taken['taken'] === true }
}

/**
 * Gives the lease of one of `mine` a new term, after waiting for what an earlier session of ours
 * still does: that comes to nothing. False: the lease is not ours.
 */
export async function renameTerm(
  session: PgSession,
  mine: readonly string[],
  term: string,
): Promise<boolean> {
  const renamed = await session.query(
    `UPDATE ${LEASE} SET term = $1, beat = beat + 1 WHERE term = ANY($2::text[]) RETURNING term`,
    [term, mine],
  )
  return renamed.length === 1
}

export async function readPosition(session: PgSession): Promise<Position> {
  const [row] = await session.query(
    `SELECT lease.seq, change.id FROM ${LEASE} LEFT JOIN ${CHANGE} ON change.seq = lease.seq`,
  )
  const id = row?.['id']
  return { seq: numberIn(row, 'seq'), change: typeof id === 'string' ? id : '' }
}

export async function readLogEnds(session: PgSession, seq: number | null): Promise<LogEnds> {
  const { cluster } = await readLease(session)
  const newest = await readPosition(session)
  const [oldest] = await session.query(`SELECT min(seq) AS seq FROM ${CHANGE}`)
  const [at] = await session.query(`SELECT id FROM ${CHANGE} WHERE seq = $1`, [seq])
  const id = at?.['id']
  return {
    cluster,
    newest,
    oldest: numberIn(oldest, 'seq'),
    atSeq: typeof id === 'string' ? id : null,
  }
}

export async function readKeysSince(
  session: PgSession,
  seq: number,
  most: number,
): Promise<readonly { readonly seq: number; readonly keys: string }[]> {
  const rows = await session.repeat(
    `SELECT seq, keys FROM ${CHANGE} WHERE seq > $1 ORDER BY seq LIMIT $2`,
    [seq, most],
  )
  return rows.map((row) => ({ seq: numberIn(row, 'seq'), keys: textOf(row, 'keys') }))
}

/** Begins each group and writes its line of the log; no row if the lease is another's. */
export const FENCE = `fence AS (UPDATE ${LEASE} SET seq = seq + 1, beat = beat + 1
  WHERE term = $1 AND seq = $2 RETURNING seq),
  noted AS (INSERT INTO ${CHANGE} (seq, id, keys) SELECT seq, $3::text, $4::text FROM fence)`
/** Also proves that the lease is ours. */
export const RENEW = `UPDATE ${LEASE} SET beat = beat + 1 WHERE term = $1 RETURNING seq`
export const HAND_OVER = `UPDATE ${LEASE} SET holder = '', beat = beat + 1 WHERE term = $1`
export const PRUNE = `DELETE FROM ${CHANGE} WHERE at < now() - interval '1 hour'
  AND seq < (SELECT seq FROM ${LEASE} WHERE term = $1)`
/** With the machines seen since: all at once, and no change of the log. */
export const RENEW_SEEN = `WITH fence AS (${RENEW}), seen AS (
  UPDATE ${SCHEMA_NAME}.machines AS own SET last_seen_at = seen.at, last_seen_ip = seen.ip
  FROM unnest($2::text[], $3::text[], $4::text[]) AS seen (mac, at, ip), fence
  WHERE own.mac = seen.mac) SELECT seq FROM fence`

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
