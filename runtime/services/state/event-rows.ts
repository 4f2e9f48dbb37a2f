/** Recorded events as rows: stored by whoever holds a transaction, read back checked. */
import { z } from 'zod'
import { parseJson } from '../../core/foundation/json-reader.ts'
import { readNumber, readText, readTextOrNull, type Row, type Sql } from './sqlite.ts'

/** An event before it has a number; `subject_kind` and `actor` are the journal's closed lists. */
interface NewEvent {
  readonly ts: string
  readonly kind: string
  readonly subject_kind: string
  readonly subject_id: string | null
  readonly actor: string
  readonly source_ip: string | null
  readonly summary: string
  readonly details: Readonly<Record<string, unknown>> | null
}

export const EVENT_COLUMNS =
  'id, ts, kind, subject_kind, subject_id, actor, source_ip, summary, details, acknowledged'

/** What the state directory lost, or is about to. */
const LOSSES: ReadonlySet<string> = new Set([
  'system.schema.reset',
  'system.disk.low',
  'system.state.empty',
  'auth.logouts.lost',
])

/** Kinds that somebody should look at: failures, suspicions, losses. */
export const isAlarm = (kind: string): boolean =>
  kind.endsWith('failed') || kind.endsWith('.suspected') || LOSSES.has(kind)

/** Stores an event under the next number. */
export function insertEvent(sql: Sql, event: NewEvent): void {
  sql.run(
    `INSERT INTO events (${EVENT_COLUMNS}, alarm)
     SELECT coalesce(max(id), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, 0, ? FROM events`,
    event.ts,
    event.kind,
    event.subject_kind,
    event.subject_id,
    event.actor,
    event.source_ip,
    event.summary,
    event.details === null ? null : JSON.stringify(event.details),
    isAlarm(event.kind) ? 1 : 0,
  )
}

export interface EventRow extends NewEvent {
  readonly id: number
  readonly acknowledged: boolean
}

export function readEvent(row: Row): EventRow {
  return {
    id: readNumber(row, 'id'),
    ts: readText(row, 'ts'),
    kind: readText(row, 'kind'),
    subject_kind: readText(row, 'subject_kind'),
    subject_id: readTextOrNull(row, 'subject_id'),
    actor: readText(row, 'actor'),
    source_ip: readTextOrNull(row, 'source_ip'),
    summary: readText(row, 'summary'),
    details: readDetails(readTextOrNull(row, 'details')),
    acknowledged: readNumber(row, 'acknowledged') === 1,
  }
}

const Details = z.record(z.string(), z.unknown())

const readDetails = (text: string | null) =>
  text === null ? null : (Details.safeParse(parseJson(text)).data ?? null)
