/** Keeps the messages to receivers: what waits to be sent, and what became of the others. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Database } from '#fleet/state/database.ts'
import { readText, type Row, type Sql } from '#fleet/state/sqlite.ts'
import { MessageContentSchema } from './rules/message.ts'

/** How many messages of one receiver stay on record besides those that wait. */
const MAX_KEPT = 100

/** `partly`: some addresses of a mail have it, and others wait. It holds up no other message. */
const MESSAGE_STATES = ['waiting', 'partly', 'delivered', 'given-up'] as const

const MessageRecordSchema = z.object({
  receiver: z.string(),
  state: z.enum(MESSAGE_STATES),
  made_at: z.string(),
  /** Since when it waits: a person may have sent it again. */
  queued_at: z.string(),
  attempts: z.int(),
  /** Null: there was no attempt yet. */
  tried_at: z.string().nullable(),
  /** When the next attempt is due. */
  next_at: z.string(),
  /** Why the last attempt failed; null: it did not. */
  failure: z.string().nullable(),
  /** The addresses of a mail that have not got it yet; absent: nobody has. */
  left: z.array(z.string()).optional(),
  /** What was said of each address that was refused for good, while others have the mail. */
  refused: z.record(z.string(), z.string()).optional(),
  content: MessageContentSchema,
  /**
   * What the receiver was called and where the pages were when it was made: a later attempt has the
   * same body, since it has the same id.
   */
  receiver_name: z.string(),
  base: z.string().nullable(),
})
type MessageRecord = z.infer<typeof MessageRecordSchema>

export interface Message extends MessageRecord {
  /** The name by which a receiver knows it again; the same at each attempt. */
  readonly id: string
}

/** It is sent again by itself. */
export const isOpen = ({ state }: Message): boolean => state === 'waiting' || state === 'partly'

export type Messages = ReturnType<typeof createMessages>

/** What it writes is on disk before it resolves. */
export function createMessages(database: Database) {
  /** Null: it is not kept any more. */
  const change = (id: string, edit: (before: MessageRecord) => MessageRecord) =>
    database.write((sql) => {
      const before = readOne(sql, id)
      if (before === null) return null
      const { id: _, ...record } = before
      const after = edit(record)
      save(sql, id, after)
      prune(sql, after.receiver)
      return { id, ...after }
    })

  return {
    find: (id: string): Message | null => readOne(database.sql, id),
    /** The one of a receiver that is next; null: none waits. */
    findWaiting: (receiver: string): Message | null =>
      database.sql.all(FIRST, receiver, 'waiting').flatMap(readRow)[0] ?? null,
    /** The oldest one of which some addresses wait; null: there is none. */
    findPartly: (receiver: string): Message | null =>
      database.sql.all(FIRST, receiver, 'partly').flatMap(readRow)[0] ?? null,
    countWaiting: (): number => Number(database.sql.get(COUNT)?.['n']),
    /** Newest first. */
    list: (receiver: string, limit: number): readonly Message[] =>
      database.sql.all(LIST, receiver, limit).flatMap(readRow),
    /** Stores it as a part of the caller's `write`, and returns it with its id. */
    insert(sql: Sql, record: MessageRecord): Message {
      const id = `msg_${randomBytes(12).toString('hex')}`
      save(sql, id, record)
      prune(sql, record.receiver)
      return { id, ...record }
    },
    change,
  }
}

const COLUMNS = 'SELECT id, record FROM notify_messages'
/** The states of what is not over. */
const OPEN = `('waiting', 'partly')`
const FIRST = `${COLUMNS} WHERE receiver = ? AND state = ? ORDER BY queued_at, id LIMIT 1`
const COUNT = `SELECT count(*) AS n FROM notify_messages WHERE state IN ${OPEN}`
const LIST = `${COLUMNS} WHERE receiver = ? ORDER BY queued_at DESC, id LIMIT ?`
const SAVE = `INSERT INTO notify_messages (id, receiver, state, queued_at, record) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET state = excluded.state, queued_at = excluded.queued_at,
  record = excluded.record`
const PRUNE = `DELETE FROM notify_messages WHERE id IN (SELECT id FROM notify_messages
  WHERE receiver = ? AND state NOT IN ${OPEN} ORDER BY queued_at DESC, id LIMIT -1 OFFSET ${MAX_KEPT})`

const save = (sql: Sql, id: string, record: MessageRecord) =>
  sql.run(SAVE, id, record.receiver, record.state, record.queued_at, JSON.stringify(record))

const prune = (sql: Sql, receiver: string) => sql.run(PRUNE, receiver)

const readOne = (sql: Sql, id: string): Message | null =>
  sql.all(`${COLUMNS} WHERE id = ?`, id).flatMap(readRow)[0] ?? null

/** Nothing for a row that cannot be read: it is not sent. */
function readRow(row: Row): readonly Message[] {
  const stored = MessageRecordSchema.safeParse(parseJson(readText(row, 'record')))
  return stored.success ? [{ id: readText(row, 'id'), ...stored.data }] : []
}

/**
 * Leaves nothing to send in a database that may be an older copy, as a part of the caller's
 * transaction: what waits there may have been sent since.
 */
export function silence(sql: Sql): void {
  for (const message of sql.all(`${COLUMNS} WHERE state IN ${OPEN}`).flatMap(readRow)) {
    const { id, ...record } = message
    save(sql, id, { ...record, state: 'given-up', failure: OLDER_STATE })
  }
  sql.run('UPDATE notify_receivers SET place = (SELECT coalesce(max(id), 0) FROM events)')
}

const OLDER_STATE = 'an older state was restored, and nothing is sent from it'
