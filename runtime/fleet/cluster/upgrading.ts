/** Brings the tables of an older release into the shape of this one, in one transaction. */
import { randomUUID } from 'node:crypto'
import { Fault } from '#kit/foundation/fault.ts'
import { SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import { CARRIED, SCHEMA } from '#fleet/state/schema.ts'
import { numberIn, textOf, type PgSession } from './postgres.ts'
import { renderFormerSchema } from './rules/former-schema.ts'
import { ALL_KEYS, SCHEMA_NAME, type SharedTable } from './rules/shared-tables.ts'
import { createTables, type Lease } from './tables.ts'

/** Every server writes to these, whether it leads or not. */
const OF_ALL = ['lease', 'member', 'secret', 'netboot'] as const
const qualify = (table: string) => `${SCHEMA_NAME}.${table}`

interface Upgrade {
  readonly from: Lease
  readonly term: string
  readonly release: string
  readonly tables: readonly SharedTable[]
}

/**
 * In one transaction: renames the schema, makes a new one, carries over what both know, and records
 * it. Every server then reads everything anew. Resolves to the former schema's name. Rejects with a
 * Fault `no-leader` if another server leads; after any failure nothing is changed.
 */
export async function upgradeTables(
  session: PgSession,
  { from, term, release, tables }: Upgrade,
): Promise<string> {
  return await session.transact('', async () => {
    // Others' writes wait and go to the new tables; without the lock they would be lost.
    await session.query(`LOCK TABLE ${OF_ALL.map(qualify).join(', ')} IN EXCLUSIVE MODE`)
    const [held] = await session.query(
      `SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at
       FROM ${SCHEMA_NAME}.lease WHERE term = $1 FOR UPDATE`,
      [term],
    )
    if (held === undefined) throw new Fault('no-leader', 'another server leads this fleet now')
    const at = textOf(held, 'at')
    const former = renderFormerSchema(from.release, at)
    await session.query(`ALTER SCHEMA ${SCHEMA_NAME} RENAME TO ${former}`)
    await createTables(session, tables)
    for (const name of [...OF_ALL, ...listCarried(tables)]) {
      await carry(session, former, name)
    }
    await session.query(
      `UPDATE ${SCHEMA_NAME}.lease SET "schema" = $1, seq = seq + 1, beat = beat + 1`,
      [SCHEMA],
    )
    await session.query(
      `INSERT INTO ${SCHEMA_NAME}.change (seq, id, keys)
       SELECT seq, $1, '${ALL_KEYS}' FROM ${SCHEMA_NAME}.lease`,
      [randomUUID()],
    )
    await record(session, { at, former, from: from.release, to: release })
    return former
  })
}

const listCarried = (tables: readonly SharedTable[]): readonly string[] => {
  const carried: readonly string[] = CARRIED
  return tables.map(({ name }) => name).filter((name) => carried.includes(name))
}

async function carry(session: PgSession, former: string, table: string): Promise<void> {
  const rows = await session.query(
    `SELECT quote_ident(column_name::text) AS name FROM information_schema.columns
     WHERE table_name = $1 AND table_schema IN ($2, $3) GROUP BY 1 HAVING count(*) = 2 ORDER BY 1`,
    [table, former, SCHEMA_NAME],
  )
  const columns = rows.map((row) => textOf(row, 'name')).join(', ')
  if (columns === '') return
  await session.query(
    `INSERT INTO ${SCHEMA_NAME}.${table} (${columns}) SELECT ${columns} FROM ${former}.${table}`,
  )
}

interface Reset {
  readonly at: string
  readonly former: string
  readonly from: string
  readonly to: string
}

async function record(session: PgSession, { at, former, from, to }: Reset): Promise<void> {
  const [counted] = await session.query(`SELECT count(*) AS machines FROM ${SCHEMA_NAME}.machines`)
  const machines = numberIn(counted, 'machines')
  const summary = `Upgraded from ${from} to ${to}: ${machines} machines, their hardware, runs and events, the settings, the tokens and the people were taken over. The old tables are the schema ${former} of the database.`
  const details = JSON.stringify({ from_version: from, to_version: to, archived_at: former })
  const { subject_kind, actor } = SYSTEM_EVENT
  await session.query(
    `INSERT INTO ${SCHEMA_NAME}.events
       (id, ts, kind, subject_kind, actor, summary, details, alarm, acknowledged)
     SELECT coalesce(max(id), 0) + 1, $1, 'system.schema.reset', $2, $3, $4, $5, 0, 0 FROM ${SCHEMA_NAME}.events`,
    [at, subject_kind, actor, summary, details],
  )
}
