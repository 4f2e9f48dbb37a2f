/** Recorded events: what happened, to what, by whom ("Recorded system events"). */
import { canFlood } from '../../core/state/flood.ts'
import { printable } from '../../core/foundation/printable.ts'
import type { Database } from './database.ts'
import type { Feed } from '../host/feed.ts'
import { renderWhere, type EventCondition } from './event-filter.ts'
import { EVENT_COLUMNS, insertEvent, readEvent, type EventRow } from './event-rows.ts'
import { createFloods, type Counted } from './floods.ts'
import { readNumber } from './sqlite.ts'

export type Actor = 'operator' | 'system' | 'pxe-client' | `token:${string}`

const SUBJECT_KINDS = [
  'machine',
  'catalog',
  'netboot',
  'settings',
  'auth',
  'backup',
  'system',
] as const
type SubjectKind = (typeof SUBJECT_KINDS)[number]

/** What is noted; `kind` is dotted, for example `machine.flashed` (the facts list the names). */
export interface EventNote {
  readonly kind: string
  readonly subject_kind: SubjectKind
  readonly subject_id: string | null
  readonly actor: Actor
  readonly source_ip: string | null
  /** One sentence for people. */
  readonly summary: string
  /** Never holds a secret. */
  readonly details: Readonly<Record<string, unknown>> | null
}

export interface JournalEvent extends EventNote {
  readonly id: number
  /** ISO time. */
  readonly ts: string
  readonly acknowledged: boolean
}

export interface EventFilter extends EventCondition {
  /** 1 to 500. */
  readonly limit: number
}

export interface Journal {
  /** On disk before it resolves, save for floods, of which some are counted instead of noted. */
  record(note: EventNote): Promise<void>
  /** Newest first. */
  list(filter: EventFilter): Promise<readonly JournalEvent[]>
  /** What needs a look: unacknowledged failures and resets. */
  countAlarms(): Promise<number>
  /** How many of them there are; those that are so already count too. */
  acknowledge(ids: readonly number[], acknowledged: boolean): Promise<number>
  /** Removes what retention no longer keeps, in small steps; happens by itself too. */
  prune(): Promise<number>
}

/** What is kept at most; read at each pruning. */
interface EventRetention {
  readonly count: number
  readonly days: number
}

interface JournalOptions {
  readonly feed?: Feed
  retention?(): EventRetention
  now?(): Date
}

const KEPT: EventRetention = { count: 100_000, days: 180 }
const HOUR_MS = 3_600_000
/** Pruning goes ahead after so many new events, and each hour. */
const PRUNE_EVERY = 1000
/** Removed in one transaction. */
const PRUNE_STEP = 500

export function createJournal(database: Database, options: JournalOptions = {}): Journal {
  const now = options.now ?? (() => new Date())
  const floods = createFloods<EventNote>(() => now().getTime(), noteCounted)
  let recorded = 0
  let pruning: Promise<number> | null = null

  async function store(notes: readonly EventNote[]) {
    const ts = now().toISOString()
    await database.write((sql) => {
      for (const note of notes) insertEvent(sql, { ...bound(note), ts })
    })
    options.feed?.announce({ topic: 'event' })
    recorded += notes.length
    if (recorded < PRUNE_EVERY) return
    recorded = 0
    // Best effort: the next one comes.
    prune().catch(() => undefined)
  }

  function noteCounted(counted: readonly Counted<EventNote>[]) {
    // Best effort: the events that began the flood are on record.
    store(counted.map(summarize)).catch(() => undefined)
  }

  /** One at a time; who asks meanwhile gets the same answer. */
  function prune(): Promise<number> {
    pruning ??= pruneEvents(database, { ...KEPT, ...options.retention?.() }, now()).finally(() => {
      pruning = null
    })
    return pruning
  }
  const timer = setInterval(() => {
    prune().catch(() => undefined)
  }, HOUR_MS).unref()
  database.beforeClosing(async () => {
    const counted = floods.drain()
    if (counted.length > 0) await store(counted.map(summarize))
  })
  database.onClosed(() => {
    clearInterval(timer)
  })

  return {
    async record(note) {
      const key = { kind: note.kind, subject: note.subject_id ?? note.source_ip ?? '' }
      if (canFlood(note.kind, note.actor) && !floods.admit(key, note)) return
      await store([note])
    },
    async list(filter) {
      const { text, values } = renderWhere(filter)
      const limit = Math.min(Math.max(1, Math.trunc(filter.limit)), 500)
      return database.sql
        .all(
          `SELECT ${EVENT_COLUMNS} FROM events ${text} ORDER BY id DESC LIMIT ?`,
          ...values,
          limit,
        )
        .map((row) => toEvent(readEvent(row)))
    },
    async countAlarms() {
      const row = database.sql.get(
        'SELECT count(*) AS n FROM events WHERE alarm = 1 AND acknowledged = 0',
      )
      return readNumber(row, 'n')
    },
    async acknowledge(ids, acknowledged) {
      const changed = await database.write((sql) => {
        const value = acknowledged ? 1 : 0
        return ids.reduce((sum, id) => sum + sql.run(ACKNOWLEDGE, value, id), 0)
      })
      if (changed > 0) options.feed?.announce({ topic: 'event' })
      return changed
    },
    prune,
  }
}

const ACKNOWLEDGE = 'UPDATE events SET acknowledged = ? WHERE id = ?'

async function pruneEvents(database: Database, kept: EventRetention, now: Date) {
  const oldest = new Date(now.getTime() - kept.days * 24 * HOUR_MS).toISOString()
  const { sql } = database
  const byCount = sql.get(OLDEST_KEPT, Math.max(0, Math.trunc(kept.count) - 1))
  const byAge = sql.get('SELECT coalesce(max(id), 0) + 1 AS id FROM events WHERE ts < ?', oldest)
  const floor = Math.max(byCount === null ? 0 : readNumber(byCount, 'id'), readNumber(byAge, 'id'))
  let removed = 0
  for (;;) {
    const step = await database.write((writer) => writer.run(PRUNE, floor, PRUNE_STEP))
    removed += step
    if (step < PRUNE_STEP) return removed
  }
}

const OLDEST_KEPT = 'SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET ?'
const PRUNE = `DELETE FROM events WHERE id IN
  (SELECT id FROM events WHERE id < ? ORDER BY id LIMIT ?)`

const MAX_SUMMARY = 500
const MAX_DETAILS = 16_384

/**
 * Callers bound what they note; this is for the one that does not. Serials and the like, which are kept
 * as they are, stand in summaries escaped.
 */
function bound(note: EventNote): EventNote {
  const { details } = note
  const large = details !== null && JSON.stringify(details).length > MAX_DETAILS
  return {
    ...note,
    summary: printable(note.summary).slice(0, MAX_SUMMARY),
    details: large ? { truncated: true } : details,
  }
}

const summarize = ({ note, count }: Counted<EventNote>): EventNote => ({
  ...note,
  summary: `${note.summary.slice(0, MAX_SUMMARY - 40)} (and ${count} more like it)`,
  details: { ...note.details, repeated: count },
})

/** Nobody but the journal writes that table. */
function toEvent(row: EventRow): JournalEvent {
  const subject_kind = SUBJECT_KINDS.find((kind) => kind === row.subject_kind) ?? 'system'
  return { ...row, subject_kind, actor: toActor(row.actor) }
}

const toActor = (actor: string): Actor => {
  if (actor === 'operator' || actor === 'pxe-client') return actor
  return actor.startsWith('token:') ? `token:${actor.slice(6)}` : 'system'
}
