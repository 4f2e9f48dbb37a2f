/** Drives one session of PostgreSQL that db0 has opened: checked, its errors heard, and over at the first of them. */
import { createDatabase as connect } from 'db0'
import postgresql from 'db0/connectors/postgresql'
import { Client, type QueryConfig } from 'pg'
import { Fault } from '#kit/foundation/fault.ts'
import { settle } from '#kit/host/watch.ts'
import { describePostgresError, type PostgresTrouble } from './rules/postgres-fault.ts'
import { TIMES, type ClusterTimes } from './rules/lease.ts'

export type PgRow = Readonly<Record<string, unknown>>

export interface PgSession extends AsyncDisposable {
  /** One message and one transaction. Rejects with PostgreSQL's or the network's error. */
  query(text: string, values?: readonly unknown[]): Promise<readonly PgRow[]>
  repeat(text: string, values: readonly unknown[]): Promise<readonly PgRow[]>
  /** All of `work` or nothing; for work that is not urgent. */
  transact<T>(mode: string, work: () => Promise<T>): Promise<T>
  /** Ends it at once; late answers do not count. */
  drop(): void
  readonly isOver: () => boolean
  /** The database waits for another host before it acknowledges. */
  readonly survivesHost: boolean
}

type SessionTimes = Pick<ClusterTimes, 'statementMs' | 'answerMs'>

const BIGINT = 20
const CONNECT_MS = 5000
/** For `transact`, where the database gives up after 60 s. */
const LONG_ANSWER_MS = 65_000

const END_MS = 1000

/** A leader stopped halfway holds nothing for long. */
const renderTuning = (
  statementMs: number,
) => `SET statement_timeout = ${statementMs}; SET idle_in_transaction_session_timeout = '2s';
  SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3;
  SET tcp_user_timeout = 3000; SET standard_conforming_strings = on`

const FACTS = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS "readOnly",
  pg_backend_pid() AS pid, current_setting('synchronous_standby_names') AS others,
  current_setting('synchronous_commit') AS waits, current_setting('server_encoding') AS encoding,
  current_database() AS name, pg_get_userbyid(datdba) AS owner
  FROM pg_database WHERE datname = current_database()`

/**
 * `url`: `postgres://user:password@host/database`, never part of a message. Rejects with a Fault
 * that has a cause: `input-invalid` if only an operator can mend it, else `no-leader`.
 */
export async function openSession(url: string, times: SessionTimes = TIMES): Promise<PgSession> {
  const opened = connect(
    postgresql({
      connectionString: url,
      application_name: 'flasher-web',
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: times.answerMs,
      keepAlive: true,
    }),
  )
  try {
    const client: unknown = await opened.getInstance()
    if (!(client instanceof Client)) throw new TypeError('db0 gave no connection of pg')
    return await prepareSession(client, times)
  } catch (thrown) {
    throw thrown instanceof Fault ? thrown : toFault(describePostgresError(thrown), thrown)
  }
}

export const toFault = ({ kind, message, hint }: PostgresTrouble, cause?: unknown): Fault =>
  new Fault(PASSING.includes(kind) ? 'no-leader' : 'input-invalid', message, {
    hint,
    cause,
  })

const PASSING: readonly PostgresTrouble['kind'][] = ['away', 'late', 'room']

/** pg reads it for each query, but its types lack it. */
interface TimedQuery extends QueryConfig {
  readonly query_timeout: number
}

async function prepareSession(
  client: Client,
  { statementMs, answerMs: usualMs }: SessionTimes,
): Promise<PgSession> {
  let isOver = false
  const drop = () => {
    isOver = true
    // Ends the socket at once: `end` waits for answers.
    void client.end().catch(() => undefined)
    client.connection.stream.destroy()
  }
  // Without a listener, a session that the database ends would end this process.
  client.on('error', () => {
    isOver = true
  })
  client.on('end', () => {
    isOver = true
  })
  client.setTypeParser(BIGINT, Number)
  const names = new Map<string, string>()
  let answerMs = usualMs
  const ask = async (query: QueryConfig): Promise<readonly PgRow[]> => {
    const timed: TimedQuery = { ...query, query_timeout: answerMs }
    return (await client.query<PgRow>(timed)).rows
  }
  const query: PgSession['query'] = (text, values = []) => ask({ text, values: [...values] })
  try {
    await client.query(renderTuning(statementMs))
    const [facts] = await query(FACTS)
    if (facts?.['readOnly'] !== false) throw refuse('25006')
    // A pooler gives a number of its own; session state would soon be another's.
    if (facts['pid'] !== numberOf(client)) throw refuse('pooler')
    if (facts['encoding'] !== 'UTF8') throw refuseEncoding(facts)
    if (facts['waits'] === 'off') await query('SET synchronous_commit = on')
    return {
      query,
      repeat(text, values) {
        const name = names.get(text) ?? `f${names.size}`
        names.set(text, name)
        return ask({ name, text, values: [...values] })
      },
      async transact(mode, work) {
        await query(`BEGIN ${mode}`)
        // This takes longer than a group, and waits for this process between messages.
        await client.query(
          `SET LOCAL statement_timeout = '60s'; SET LOCAL idle_in_transaction_session_timeout = '60s'`,
        )
        answerMs = LONG_ANSWER_MS
        try {
          const made = await work()
          await query('COMMIT')
          return made
        } catch (thrown) {
          answerMs = usualMs
          await query('ROLLBACK').catch(drop)
          throw thrown
        } finally {
          answerMs = usualMs
        }
      },
      drop,
      isOver: () => isOver,
      survivesHost: facts['others'] !== '' && facts['waits'] !== 'local',
      async [Symbol.asyncDispose]() {
        if (!isOver) await settle(client.end(), END_MS)
        drop()
      },
    }
  } catch (thrown) {
    drop()
    throw thrown
  }
}

const numberOf = (client: Client): unknown => ('processID' in client ? client.processID : undefined)

const refuse = (code: string): Fault =>
  toFault(describePostgresError(Object.assign(new Error('checked at the start'), { code })))

/** Names come in every script; only UTF8 holds them all. */
function refuseEncoding(facts: PgRow): Fault {
  const [name, owner] = [textOf(facts, 'name'), textOf(facts, 'owner')]
  const encoding = textOf(facts, 'encoding')
  const message = `the database ${name} has the encoding ${encoding}, which cannot hold every text: it must be UTF8`
  const command = `createdb ${quote(`${name}_utf8`)} --owner ${quote(owner)} --encoding UTF8 --template template0`
  return new Fault('input-invalid', message, {
    hint: `Make another one on its server, and name it in database.url: ${command}`,
  })
}

const quote = (word: string): string =>
  /^[\w.-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/** Throws a TypeError for another type, or without a row. */
export function textOf(row: PgRow | undefined, column: string): string {
  const value = row?.[column]
  if (typeof value === 'string') return value
  throw new TypeError(`the database gave no text in column ${column}`)
}

/** Throws a TypeError for another type, or without a row. */
export function numberIn(row: PgRow | undefined, column: string): number {
  const value = row?.[column]
  if (typeof value === 'number') return value
  throw new TypeError(`the database gave no number in column ${column}`)
}
