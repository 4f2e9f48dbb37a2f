/** The rows of the secrets that servers share: wrapped, each with a version that is another after each change. */
import { textOf, type PgSession } from './postgres.ts'
import type { SharedFileName } from './rules/lease.ts'
import { SCHEMA_NAME } from './rules/shared-tables.ts'

const SECRET = `${SCHEMA_NAME}.secret`
export const SECRET_TABLE = `CREATE TABLE ${SECRET} (name text PRIMARY KEY, version text NOT NULL,
  wrapped bytea NOT NULL)`

export async function readVersions(session: PgSession): Promise<ReadonlyMap<string, string>> {
  const rows = await session.repeat(`SELECT name, version FROM ${SECRET}`, [])
  return new Map(rows.map((row) => [textOf(row, 'name'), textOf(row, 'version')] as const))
}

export async function readSecret(session: PgSession, name: SharedFileName) {
  const [row] = await session.query(`SELECT version, wrapped FROM ${SECRET} WHERE name = $1`, [
    name,
  ])
  const wrapped = row?.['wrapped']
  if (!(wrapped instanceof Uint8Array)) return null
  return { version: textOf(row, 'version'), wrapped }
}

interface WrittenSecret {
  readonly name: SharedFileName
  /** The replaced version; null: no row yet. */
  readonly before: string | null
  readonly version: string
  readonly wrapped: Uint8Array
  /** Under which this server leads; null: it does not. */
  readonly epoch: number | null
}

/** False: another server was quicker, or leads. */
export async function writeSecret(
  session: PgSession,
  { name, before, version, wrapped, epoch }: WrittenSecret,
): Promise<boolean> {
  const values = [name, version, wrapped, epoch, ...(before === null ? [] : [before])]
  const stored = await session.query(before === null ? ADD : REPLACE, values)
  return stored.length === 1
}

/** A takeover waits for earlier writes, and nothing is written after it. */
const IS_HELD = `($4::bigint IS NULL OR EXISTS (
  SELECT 1 FROM ${SCHEMA_NAME}.lease WHERE epoch = $4::bigint FOR SHARE))`
const ADD = `INSERT INTO ${SECRET} (name, version, wrapped)
  SELECT $1::text, $2::text, $3::bytea WHERE ${IS_HELD}
  ON CONFLICT (name) DO NOTHING RETURNING name`
const REPLACE = `UPDATE ${SECRET} SET version = $2, wrapped = $3
  WHERE name = $1 AND version = $5 AND ${IS_HELD} RETURNING name`
