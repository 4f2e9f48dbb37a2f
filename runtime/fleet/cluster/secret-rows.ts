/** The rows of the secrets that servers share: wrapped, each with a version that is another after each change. */
import { textOf, type PgSession } from './postgres.ts'
import type { SharedFileName } from './rules/shared-file.ts'
import { SCHEMA_NAME } from './rules/shared-tables.ts'

const SECRET = `${SCHEMA_NAME}.secret`
export const SECRET_TABLE = `CREATE TABLE ${SECRET} (name text PRIMARY KEY, version text NOT NULL,
  wrapped bytea NOT NULL)`

export async function readVersions(session: PgSession): Promise<ReadonlyMap<string, string>> {
  const rows = await session.repeat(`SELECT name, version FROM ${SECRET}`, [])
  return new Map(rows.map((row) => [textOf(row, 'name'), textOf(row, 'version')] as const))
}

/** Null: there is none. */
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
  /** The version that is replaced; null: there is no row yet. */
  readonly before: string | null
  readonly version: string
  readonly wrapped: Uint8Array
}

/** False: another server was quicker. */
export async function writeSecret(
  session: PgSession,
  { name, before, version, wrapped }: WrittenSecret,
): Promise<boolean> {
  const values = [name, version, wrapped, ...(before === null ? [] : [before])]
  const stored = await session.query(before === null ? ADD : REPLACE, values)
  return stored.length === 1
}

const ADD = `INSERT INTO ${SECRET} (name, version, wrapped) VALUES ($1, $2, $3)
  ON CONFLICT (name) DO NOTHING RETURNING name`
const REPLACE = `UPDATE ${SECRET} SET version = $2, wrapped = $3
  WHERE name = $1 AND version = $4 RETURNING name`
