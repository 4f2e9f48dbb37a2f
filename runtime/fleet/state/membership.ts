/** Where a `state.db` stands that belongs to a database several servers share; one that does not has no such table. */
import type { ClusterMembership } from './rules/change-count.ts'
import { readNumber, readText, type Sql } from './sqlite.ts'

export const MEMBERSHIP_TABLE = 'cluster_membership'
/** Made when a file first follows a database. */
export const MEMBERSHIP_SQL = `CREATE TABLE ${MEMBERSHIP_TABLE} (
  cluster TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  change TEXT NOT NULL
)`

/** For a file that must read everything anew. */
export const NOWHERE = -1

/** Null: the file follows no shared database. `schema`: its attached name. */
export function readMembership(sql: Pick<Sql, 'get'>, schema = 'main'): ClusterMembership | null {
  const read = `SELECT cluster, seq, change FROM ${schema}.${MEMBERSHIP_TABLE}`
  const row = readTable(sql, schema) === null ? null : sql.get(read)
  if (row === null) return null
  const [cluster, change] = [readText(row, 'cluster'), readText(row, 'change')]
  return { cluster, seq: readNumber(row, 'seq'), change }
}

const readTable = (sql: Pick<Sql, 'get'>, schema: string) =>
  sql.get(`SELECT 1 AS n FROM ${schema}.sqlite_master WHERE name = '${MEMBERSHIP_TABLE}'`)

/** Part of the transaction that stores the changes. */
export function writeMembership(
  sql: Pick<Sql, 'get' | 'run'>,
  membership: ClusterMembership,
): void {
  if (readTable(sql, 'main') === null) sql.run(MEMBERSHIP_SQL)
  sql.run(`DELETE FROM ${MEMBERSHIP_TABLE}`)
  sql.run(
    `INSERT INTO ${MEMBERSHIP_TABLE} (cluster, seq, change) VALUES (?, ?, ?)`,
    membership.cluster,
    membership.seq,
    membership.change,
  )
}

export const dropMembership = (sql: Pick<Sql, 'run'>): void =>
  void sql.run(`DROP TABLE IF EXISTS ${MEMBERSHIP_TABLE}`)
