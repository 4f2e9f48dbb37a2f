/** Keeps the receivers of notifications, and how far each of them has followed the events. */
import { randomBytes } from 'node:crypto'
import { parseJson } from '../../kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { Database } from '../state/database.ts'
import { readNumber, readText, type Row, type Sql } from '../state/sqlite.ts'
import {
  MAX_RECEIVERS,
  ReceiverRecordSchema,
  type Receiver,
  type ReceiverRecord,
} from './rules/receiver.ts'

export type Receivers = ReturnType<typeof createReceivers>

export type ReceiverRefusal = 'name-taken' | 'too-many' | 'unknown'

/** Creates the store. Lookups come from memory; a change is on disk before it resolves. */
export function createReceivers(database: Database) {
  let kept: readonly Receiver[] = []
  let epoch: number | null = null

  function list(): readonly Receiver[] {
    const present = database.epoch()
    if (present === epoch) return kept
    kept = readAll(database.sql)
    epoch = present
    return kept
  }

  async function change<T>(work: (sql: Sql) => T): Promise<T> {
    try {
      return await database.write(work)
    } finally {
      epoch = null
    }
  }

  return {
    /** Lists them by name. */
    list,
    find: (id: string): Receiver | null => list().find((one) => one.id === id) ?? null,
    /** It hears of what happens from here on. */
    add: (record: ReceiverRecord): Promise<Result<Receiver, ReceiverRefusal>> =>
      change((sql) => {
        const all = readAll(sql)
        if (all.some(({ name }) => name === record.name)) return refuse('name-taken')
        if (all.length >= MAX_RECEIVERS) return refuse('too-many')
        const id = randomBytes(6).toString('hex')
        sql.run(ADD, id, JSON.stringify(record))
        return accept({ id, ...record })
      }),
    /** Replaces what is stored by what `edit` makes of it at that moment. */
    update: (
      id: string,
      edit: (before: ReceiverRecord) => ReceiverRecord,
    ): Promise<Result<Receiver, ReceiverRefusal>> =>
      change((sql) => {
        const all = readAll(sql)
        const found = all.find((one) => one.id === id)
        if (found === undefined) return refuse('unknown')
        const { id: _, ...before } = found
        const record = edit(before)
        const isTaken = all.some((one) => one.id !== id && one.name === record.name)
        if (isTaken) return refuse('name-taken')
        sql.run('UPDATE notify_receivers SET record = ? WHERE id = ?', JSON.stringify(record), id)
        // Who has not listened hears nothing of what happened meanwhile.
        if (before.paused && !record.paused) sql.run(CATCH_UP, id)
        return accept({ id, ...record })
      }),
    /** Removes it with its messages. Resolves to what it was; null: there was none. */
    async remove(id: string): Promise<Receiver | null> {
      const receiver = list().find((one) => one.id === id) ?? null
      const isGone = await change((sql) => {
        sql.run('DELETE FROM notify_messages WHERE receiver = ?', id)
        return sql.run('DELETE FROM notify_receivers WHERE id = ?', id) > 0
      })
      return isGone ? receiver : null
    },
    /** The number of the last event that was put into a message, or passed by; null: no such receiver. */
    placeOf(id: string): number | null {
      const row = database.sql.get('SELECT place FROM notify_receivers WHERE id = ?', id)
      return row === null ? null : readNumber(row, 'place')
    },
    /** Moves it as a part of the caller's `write`. False: the receiver is gone. */
    moveTo: (sql: Sql, id: string, place: number): boolean =>
      sql.run('UPDATE notify_receivers SET place = ? WHERE id = ?', place, id) > 0,
  }
}

const NEWEST = '(SELECT coalesce(max(id), 0) FROM events)'
const ADD = `INSERT INTO notify_receivers (id, record, place) VALUES (?, ?, ${NEWEST})`
const CATCH_UP = `UPDATE notify_receivers SET place = ${NEWEST} WHERE id = ?`

/** Nothing for a row that cannot be read: nothing is sent to it. */
const readAll = (sql: Sql): readonly Receiver[] =>
  sql
    .all('SELECT id, record FROM notify_receivers')
    .flatMap(readRow)
    .toSorted((a, b) => a.name.localeCompare(b.name))

function readRow(row: Row): readonly Receiver[] {
  const stored = ReceiverRecordSchema.safeParse(parseJson(readText(row, 'record')))
  return stored.success ? [{ id: readText(row, 'id'), ...stored.data }] : []
}
