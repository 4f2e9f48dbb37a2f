/** Keeps batches: what each of them is, and its machines, a row for each. */
import { randomBytes } from 'node:crypto'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Changes } from '#kit/host/changes.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { Database } from '#fleet/state/database.ts'
import { keepRead } from '#fleet/state/kept-rows.ts'
import { readNumber, readText, type Row, type Sql } from '#fleet/state/sqlite.ts'
import { AMONG, renderList } from '#fleet/state/event-rows.ts'
import {
  BatchSchema,
  MemberSchema,
  type Batch,
  type BatchMember,
  type StoredMember,
} from './rules/batch.ts'

export type Batches = ReturnType<typeof createBatches>

/** The newest batches are kept; the oldest go with their machines. */
const MAX_BATCHES = 200
/** Machines whose rows are written at once, so that others are answered meanwhile. */
const STEP = 500

export function createBatches(
  database: Database,
  { changes }: { readonly changes?: Changes } = {},
) {
  const announce = (id: string) => changes?.announce({ topic: 'batch', id })
  const { current: list, write: change } = keepRead(database, (sql): readonly Batch[] =>
    sql
      .all('SELECT record FROM batches ORDER BY made_at DESC, id')
      .flatMap((row) => parseBatch(row) ?? []),
  )
  const write = async (id: string, work: (sql: Sql) => void): Promise<void> => {
    await change(work)
    announce(id)
  }
  const find = (id: string): Batch | null => list().find((batch) => batch.id === id) ?? null
  return {
    /** Newest first; from memory, like `isPaused`. */
    list,
    find,
    isPaused: (id: string): boolean => (find(id)?.paused_at ?? null) !== null,
    async begin(
      batch: Omit<Batch, 'id' | 'acted_at' | 'paused_at' | 'resumed_by' | 'ended_at'>,
    ): Promise<Batch> {
      const made: Batch = {
        id: makeId(),
        ...batch,
        acted_at: null,
        paused_at: null,
        resumed_by: null,
        ended_at: null,
      }
      await write(made.id, (sql) => {
        save(sql, made)
        for (const old of sql.all(OLD, MAX_BATCHES)) remove(sql, readText(old, 'id'))
      })
      return made
    },
    async change(id: string, edit: (batch: Batch) => Batch): Promise<void> {
      await write(id, (sql) => {
        const row = sql.get('SELECT record FROM batches WHERE id = ?', id)
        const batch = row === null ? null : parseBatch(row)
        if (batch !== null) save(sql, edit(batch))
      })
    },
    ...createMembers(database, announce),
  }
}

type Announce = (id: string) => void

const createMembers = (database: Database, announce: Announce) => ({
  async keepMembers(id: string, members: readonly BatchMember[]): Promise<void> {
    for (let at = 0; at < members.length; at += STEP) {
      await database.write((sql) => {
        for (const { mac, ...member } of members.slice(at, at + STEP)) {
          sql.run(KEEP, id, mac, JSON.stringify(member))
        }
      })
      announce(id)
    }
  },
  /** By batch; batches without any of these machines are left out. */
  countAmong(macs: readonly string[]): ReadonlyMap<string, number> {
    const rows = database.sql.all(COUNT_AMONG, renderList(macs) ?? '[]')
    return new Map(rows.map((row) => [readText(row, 'batch'), readNumber(row, 'n')]))
  },
  listMembers(id: string): readonly BatchMember[] {
    return database.sql.all(MEMBERS, id).flatMap((row) => {
      const mac = parseMac(readText(row, 'mac'))
      const member = parseMember(row)
      return member === null || !mac.ok ? [] : [{ mac: mac.value, ...member }]
    })
  },
  /** `decide`: what became of it as its machine left the batch; null: it has not left. */
  async leave(
    id: string,
    mac: string,
    decide: (member: StoredMember) => StoredMember['left'],
  ): Promise<void> {
    await database.write((sql) => {
      const row = sql.get(MEMBER, id, mac)
      const member = row === null ? null : parseMember(row)
      const left = member === null ? null : decide(member)
      if (left !== null) sql.run(KEEP, id, mac, JSON.stringify({ ...member, left }))
    })
    announce(id)
  },
})

const makeId = (): string => randomBytes(6).toString('hex')

const parseBatch = (row: Row): Batch | null =>
  BatchSchema.safeParse(parseJson(readText(row, 'record'))).data ?? null

const parseMember = (row: Row): StoredMember | null =>
  MemberSchema.safeParse(parseJson(readText(row, 'record'))).data ?? null

const OLD = 'SELECT id FROM batches ORDER BY made_at DESC, id LIMIT -1 OFFSET ?'
const COUNT_AMONG = `SELECT batch, count(*) AS n FROM batch_machines WHERE mac ${AMONG} GROUP BY batch`
const MEMBERS = 'SELECT mac, record FROM batch_machines WHERE batch = ? ORDER BY mac'
const MEMBER = 'SELECT record FROM batch_machines WHERE batch = ? AND mac = ?'
const KEEP = `INSERT INTO batch_machines (batch, mac, record) VALUES (?, ?, ?)
  ON CONFLICT (batch, mac) DO UPDATE SET record = excluded.record`
const SAVE = `INSERT INTO batches (id, made_at, record) VALUES (?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET record = excluded.record`

const save = (sql: Sql, batch: Batch) => sql.run(SAVE, batch.id, batch.by.at, JSON.stringify(batch))

function remove(sql: Sql, id: string): void {
  sql.run('DELETE FROM batch_machines WHERE batch = ?', id)
  sql.run('DELETE FROM batches WHERE id = ?', id)
}
