/** The tables in PostgreSQL, and their one row that says who leads. */
import { randomUUID } from 'node:crypto'
import { Fault } from '../../kit/foundation/fault.ts'
import { SCHEMA } from '../state/schema.ts'
import type { LeaseReading, Position } from './rules/lease.ts'
import type { LogEnds } from './rules/catch-up.ts'
import { PEOPLE_VIEWS } from './rules/people-views.ts'
import { renderTable, SCHEMA_NAME, type SharedTable } from './rules/shared-tables.ts'
import { MEMBER_TABLE, type Member } from './members.ts'
import { NETBOOT, NETBOOT_TABLE } from './netboot-row.ts'
import { numberIn, textOf, type PgRow, type PgSession } from './postgres.ts'
import { SECRET_TABLE } from './secret-rows.ts'

/** The lease, as every server may read it. */
export interface Lease extends LeaseReading {
  readonly cluster: string
  readonly seq: number
  /** How often the leader has changed. */
  readonly epoch: number
  /** The release line and the shape of the tables, which every server must have. */
  readonly line: string
  readonly schema: number
  /** The release of the server that leads. */
  readonly release: string
  /** Since when it leads (ISO time of the database), and how people reach it. */
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

/** Two servers that make the tables at the same moment wait for each other. */
const ONE_MAKES = 'SELECT pg_advisory_xact_lock(1718382451, 2)'

export async function hasTables(session: PgSession): Promise<boolean> {
  const [found] = await session.query(`SELECT to_regclass('${LEASE}')::text AS name`)
  return found?.['name'] !== null
}

/** Makes the tables and the views on them, without rows; part of the caller's transaction. */
export async function createTables(
  session: PgSession,
  tables: readonly SharedTable[],
): Promise<void> {
  await session.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA_NAME}`)
  for (const text of [...OWN_TABLES, ...tables.map(renderTable), ...PEOPLE_VIEWS])
    await session.query(text)
}

/** Whether only an upgrade makes these tables usable, which the server does that leads next. */
export const isOlderShape = ({ schema }: Pick<Lease, 'schema'>): boolean => schema < SCHEMA

/** Rejects with a Fault where they are of another line, or newer. */
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

/** Tables of the same shape may be older than this one of them. */
async function addNetboot(session: PgSession): Promise<void> {
  const [found] = await session.query(`SELECT to_regclass('${NETBOOT}')::text AS name`)
  if (found?.['name'] !== null) return
  await session.transact('', async () => {
    await session.query(ONE_MAKES)
    await session.query(NETBOOT_TABLE)
  })
}

/** Throws a Fault `input-invalid` where the tables are of another line, or of a newer release. */
export function checkShape(lease: Pick<Lease, 'line' | 'schema' | 'release'>, line: string): void {
  if (lease.line !== line) {
    throw new Fault(
      'input-invalid',
      `the database belongs to the ${lease.line} release line; this is the ${line} line`,
      { hint: 'Give this line a database of its own.' },
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

/** A number that fits the lock: another one for each leader, so that no former one holds its claim. */
const hintOf = (epoch: string) => `pg_try_advisory_lock(1718382452, (${epoch} % 2147483647)::int)`

/** The claim of a leader's session, as a hint for those who wait: it is free when that session has ended. */
export async function takeHint(session: PgSession, epoch: number): Promise<boolean> {
  const [row] = await session.query(`SELECT ${hintOf('$1::bigint')} AS taken`, [epoch])
  return row?.['taken'] === true
}

export interface TakenLease {
  readonly epoch: number
  /** Whether nobody had its claim before anybody could know of it; it is taken anew where somebody had. */
  readonly holdsHint: boolean
}

/** Takes the lease from what was read of it; null: somebody else was quicker. */
export async function takeLease(
  session: PgSession,
  seen: LeaseReading,
  term: string,
  { name, release, url }: Omit<Member, 'id'>,
): Promise<TakenLease | null> {
  const [taken] = await session.query(
    `UPDATE ${LEASE} SET term = $1, epoch = epoch + 1, beat = beat + 1, holder = $2, release = $3,
     url = $4, since = now() WHERE term = $5 AND beat = $6
     RETURNING epoch, ${hintOf('epoch')} AS taken`,
    [term, name, release, url, seen.term, seen.beat],
  )
  if (taken === undefined) return null
  return { epoch: numberIn(taken, 'epoch'), holdsHint: taken['taken'] === true }
}

/**
 * Gives the lease that one of `mine` holds a new term, so that what an earlier session of ours may
 * still be doing comes to nothing; it waits for that. False: it is not ours any more.
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

/** What decides how a server that stands at `seq` catches up. */
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

/** What the next changes after `seq` name, as it is in the log; at most `most` of them. */
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

/** The beginning of each group, with its line in the log: it has no row where the lease is another's. */
export const FENCE = `fence AS (UPDATE ${LEASE} SET seq = seq + 1, beat = beat + 1
  WHERE term = $1 AND seq = $2 RETURNING seq),
  noted AS (INSERT INTO ${CHANGE} (seq, id, keys) SELECT seq, $3::text, $4::text FROM fence)`
/** A renewal, and the proof that the lease is still ours. */
export const RENEW = `UPDATE ${LEASE} SET beat = beat + 1 WHERE term = $1 RETURNING seq`
/** A clean stop: the next one need not wait. */
export const HAND_OVER = `UPDATE ${LEASE} SET holder = '', beat = beat + 1 WHERE term = $1`
export const PRUNE = `DELETE FROM ${CHANGE} WHERE at < now() - interval '1 hour'
  AND seq < (SELECT seq FROM ${LEASE} WHERE term = $1)`
/** The same with the machines that were seen since: no change of the log, and all of them at once. */
export const RENEW_SEEN = `WITH fence AS (${RENEW}), seen AS (
  UPDATE ${SCHEMA_NAME}.machines AS own SET last_seen_at = seen.at, last_seen_ip = seen.ip
  FROM unnest($2::text[], $3::text[], $4::text[]) AS seen (mac, at, ip), fence
  WHERE own.mac = seen.mac) SELECT seq FROM fence`
