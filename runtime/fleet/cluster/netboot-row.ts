/** The row of the live systems that the servers of a fleet share; who leads writes it. */
import { textOf, type PgSession } from './postgres.ts'
import type { NetbootRow } from './rules/shared-netboot.ts'
import { SCHEMA_NAME } from './rules/shared-tables.ts'

export const NETBOOT = `${SCHEMA_NAME}.netboot`
export const NETBOOT_TABLE = `CREATE TABLE IF NOT EXISTS ${NETBOOT} (one boolean PRIMARY KEY DEFAULT true CHECK (one),
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
