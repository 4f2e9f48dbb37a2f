/** The rows of the servers that share a database: each writes its own, every second. */
import { numberIn, textOf, type PgSession } from './postgres.ts'
import { listWaitedFor, type MemberRow, parseFacts } from './rules/lease.ts'
import { SCHEMA_NAME } from './rules/shared-tables.ts'

const MEMBER = `${SCHEMA_NAME}.member`
export const MEMBER_TABLE = `CREATE TABLE ${MEMBER} (id text PRIMARY KEY, name text NOT NULL,
  url text NOT NULL, release text NOT NULL, seq bigint, facts text NOT NULL,
  seen timestamptz NOT NULL DEFAULT now())`

export interface Member {
  readonly id: string
  readonly name: string
  readonly release: string
  readonly url: string
}

/** False: it has no row, or `writeMember` has to say more. */
export async function touchMember(
  session: PgSession,
  id: string,
  seq: number | null,
): Promise<boolean> {
  const touched = await session.repeat(
    `UPDATE ${MEMBER} SET seen = now(), seq = $2 WHERE id = $1 RETURNING id`,
    [id, seq],
  )
  return touched.length === 1
}

interface MemberBeat extends Pick<Member, 'name' | 'url'> {
  /** By the database's clock; another text each time. */
  readonly seen: string
  readonly silentSeconds: number
}

export async function readBeat(session: PgSession, id: string): Promise<MemberBeat | null> {
  const [row] = await session.query(
    `SELECT name, url, seen::text AS seen, extract(epoch FROM now() - seen)::bigint AS silent
     FROM ${MEMBER} WHERE id = $1`,
    [id],
  )
  if (row === undefined) return null
  return {
    name: textOf(row, 'name'),
    url: textOf(row, 'url'),
    seen: textOf(row, 'seen'),
    silentSeconds: numberIn(row, 'silent'),
  }
}

export async function writeMember(
  session: PgSession,
  { id, name, url, release }: Member,
  seq: number | null,
  facts: string,
): Promise<void> {
  await session.query(
    `INSERT INTO ${MEMBER} (id, name, url, release, seq, facts) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, url = excluded.url,
     release = excluded.release, seq = excluded.seq, facts = excluded.facts, seen = now()`,
    [id, name, url, release, seq, facts],
  )
}

/** A server with a fresh state folder leaves a row at each start. */
const MAX_MEMBERS = 100
const MAX_FACTS_CHARACTERS = 2 ** 16

export async function readMembers(session: PgSession): Promise<readonly MemberRow[]> {
  const rows = await session.repeat(
    `SELECT id, name, url, release, coalesce(seq, -1) AS seq,
     left(facts, ${MAX_FACTS_CHARACTERS}) AS facts,
     extract(epoch FROM now() - seen)::bigint AS silent
     FROM (SELECT * FROM ${MEMBER} WHERE seen > now() - interval '7 days'
       ORDER BY seen DESC, id LIMIT ${MAX_MEMBERS}) AS newest ORDER BY name, id`,
    [],
  )
  return rows.map((row) => {
    const seq = numberIn(row, 'seq')
    return {
      id: textOf(row, 'id'),
      name: textOf(row, 'name'),
      url: textOf(row, 'url'),
      release: textOf(row, 'release'),
      seq: seq < 0 ? null : seq,
      silentSeconds: numberIn(row, 'silent'),
      facts: parseFacts(textOf(row, 'facts')),
    }
  })
}

/** Returns how many; a running server is back within a second. */
export async function forgetMember(session: PgSession, name: string): Promise<number> {
  return (await session.query(`DELETE FROM ${MEMBER} WHERE name = $1 RETURNING id`, [name])).length
}

/** Servers whose upgrade this one waits for; `led`: the last leader's release. */
export async function readWaitedFor(
  session: PgSession,
  own: Pick<Member, 'id' | 'release'>,
  led: string,
): Promise<readonly string[]> {
  if (led === '' || led === own.release) return []
  return listWaitedFor(await readMembers(session), own, led)
}
