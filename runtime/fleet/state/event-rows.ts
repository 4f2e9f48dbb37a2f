/** Stores recorded events as rows within a caller's transaction, and reads them back checked. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isAlarm, type RecordedEvent } from './rules/event-table.ts'
import {
  readNumber,
  readText,
  readTextOrNull,
  type Row,
  type Sql,
  type SqlValue,
} from './sqlite.ts'
import { findMac } from '#kit/net/rules/mac.ts'

interface Where {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/** Empty without a value. Each `?` stands for the value. */
export const condition = (text: string, value: SqlValue | undefined): readonly Where[] =>
  value === undefined ? [] : [{ text, values: [...text.matchAll(/\?/g)].map(() => value) }]

export const flag = (text: string, isWanted: boolean | undefined): readonly Where[] =>
  isWanted === true ? [{ text, values: [] }] : []

/** Follows a column; `renderList` renders the list. */
export const AMONG = 'IN (SELECT value FROM json_each(?))'

export const renderList = (values: readonly string[] | undefined): string | undefined =>
  values === undefined ? undefined : JSON.stringify(values)

const MAX_WORDS = 8

/** Each word (at most eight) is in a column, an address in any spelling; `%`, `_` are plain. */
export function search(columns: readonly string[], text = ''): readonly Where[] {
  const isIn = columns.map((column) => `lower(coalesce(${column}, '')) LIKE ? ESCAPE '!'`)
  const words = text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, MAX_WORDS)
  return words.map((word): Where => {
    // Addresses are stored in one spelling; twelve digits can be something else, too.
    const meant = [...new Set([word, findMac(word) ?? word])]
    return {
      text: meant.flatMap(() => isIn).join(' OR '),
      values: meant.flatMap((one) => isIn.map(() => `%${one.replace(/[!%_]/g, '!$&')}%`)),
    }
  })
}

export const renderWhere = (parts: readonly Where[]): Where => ({
  text: parts.length === 0 ? '' : `WHERE (${parts.map(({ text }) => text).join(') AND (')})`,
  values: parts.flatMap(({ values }) => values),
})

export type NewEvent = Omit<RecordedEvent, 'id' | 'acknowledged'>

export interface EventCondition {
  readonly kind?: string | undefined
  readonly subject_kind?: string | undefined
  readonly subject_id?: string | undefined
  readonly actor?: string | undefined
  readonly source_ip?: string | undefined
  /** Their own actions, their tokens', and machines' on their behalf; or `administrator`. */
  readonly person?: string | undefined
  /** Flashes that began. */
  readonly erased?: boolean | undefined
  readonly failed?: boolean | undefined
  readonly unacknowledged?: boolean | undefined
  readonly batch?: string | undefined
  /** Without events of a batch, which has its own line. */
  readonly folded?: boolean | undefined
  /** Without logins, and without backups that have not ended. */
  readonly withoutRoutine?: boolean | undefined
  /** Patterns (`netboot.*`), one of which must fit. */
  readonly kinds?: readonly string[] | undefined
  readonly byPeople?: boolean | undefined
  /** About these machines, about batches of them alone, or about no machine (images, netboot). */
  readonly among?: readonly string[] | undefined
  /** Words, each in kind, subject, actor, address or summary. */
  readonly text?: string | undefined
  readonly before_id?: number | undefined
  /** ISO times: from the first on, before the second. */
  readonly since?: string | undefined
  readonly until?: string | undefined
}

export const SYSTEM_EVENT = {
  subject_kind: 'system',
  subject_id: null,
  actor: 'system',
  source_ip: null,
  details: null,
} as const

const TEXTS = ['ts', 'kind', 'subject_kind', 'subject_id', 'actor', 'source_ip', 'summary'] as const
const COLUMNS = `id, ${TEXTS.join(', ')}, details, acknowledged`
const EQUAL = ['kind', 'subject_kind', 'subject_id', 'actor', 'source_ip'] as const
const SEARCHED = ['kind', 'subject_id', 'actor', 'source_ip', 'summary'] as const
export const UNACKNOWLEDGED = 'alarm = 1 AND acknowledged = 0'

const ABOUT_SEEN = `subject_kind IN ('catalog', 'netboot')
  OR (subject_kind = 'machine' AND subject_id ${AMONG})
  OR (subject_kind = 'batch'
    AND EXISTS (SELECT 1 FROM batch_machines WHERE batch = subject_id)
    AND NOT EXISTS (SELECT 1 FROM batch_machines WHERE batch = subject_id AND mac NOT ${AMONG}))`

export const aboutSeen = (among: readonly string[] | undefined) =>
  condition(ABOUT_SEEN, renderList(among))

const ARMED_BY = `json_extract(details, '$.armed_by')`

/** A person, a token's owner, or the administrator. */
const personOf = (actor: string): string =>
  `CASE WHEN ${actor} LIKE 'person:%' THEN substr(${actor}, 8)
    WHEN ${actor} LIKE 'token:%@%' THEN substr(${actor}, instr(${actor}, '@') + 1)
    WHEN ${actor} = 'operator' OR ${actor} LIKE 'token:%' THEN 'administrator' END`

/** A machine without a run only reports the end. */
const ERASED = `kind = 'machine.flash_started'
  OR (kind = 'machine.flashed' AND json_extract(details, '$.run') IS NULL)`

const OF_KINDS = 'EXISTS (SELECT 1 FROM json_each(?) AS pattern WHERE kind GLOB pattern.value)'
const NOT_ROUTINE = `kind NOT IN ('auth.login.succeeded', 'auth.logout',
  'backup.create.requested', 'backup.create.started')`
const BY_PEOPLE = `actor NOT IN ('system', 'pxe-client')`

export function insertEvent(sql: Sql, event: NewEvent): void {
  sql.run(
    `INSERT INTO events (${COLUMNS}, alarm)
     SELECT coalesce(max(id), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, 0, ? FROM events`,
    ...TEXTS.map((name) => event[name]),
    event.details === null ? null : renderDetails(event.details),
    isAlarm(event.kind) ? 1 : 0,
  )
}

const MAX_DETAILS = 16_384

/** A last limit: callers limit what they record. */
function renderDetails(details: object): string {
  const text = JSON.stringify(details)
  return text.length > MAX_DETAILS ? '{"truncated":true}' : text
}

export function listEvents(
  sql: Sql,
  filter: EventCondition,
  limit: number,
): readonly RecordedEvent[] {
  const { text, values } = renderWhere([
    ...EQUAL.flatMap((column) => condition(`${column} = ?`, filter[column])),
    ...condition(`? IN (${personOf('actor')}, ${personOf(ARMED_BY)})`, filter.person),
    ...flag(ERASED, filter.erased),
    ...condition(OF_KINDS, filter.kinds && JSON.stringify(filter.kinds)),
    ...flag(BY_PEOPLE, filter.byPeople),
    ...flag(NOT_ROUTINE, filter.withoutRoutine),
    ...condition('id < ?', filter.before_id),
    ...condition('ts >= ?', filter.since),
    ...condition('ts < ?', filter.until),
    ...flag(`kind LIKE '%failed'`, filter.failed),
    ...flag(UNACKNOWLEDGED, filter.unacknowledged),
    ...condition(`substr(details, 1, ${PART_OF.length + BATCH_ID}) = ?`, partOf(filter.batch)),
    ...flag(
      `(details IS NULL OR substr(details, 1, ${PART_OF.length}) <> '${PART_OF}')`,
      filter.folded,
    ),
    ...aboutSeen(filter.among),
    ...search(SEARCHED, filter.text),
  ])
  const query = `SELECT ${COLUMNS} FROM events ${text} ORDER BY id DESC LIMIT ?`
  return sql.all(query, ...values, limit).map(readEvent)
}

/** Oldest first. */
export const listEventsAfter = (sql: Sql, id: number, limit: number): readonly RecordedEvent[] =>
  sql.all(AFTER, id, limit).map(readEvent)

const AFTER = `SELECT ${COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT ?`

/** How the details of a batch's part begin, and the length of a batch's id. */
const PART_OF = '{"batch":"'
const BATCH_ID = 12

const partOf = (batch: string | undefined) =>
  batch === undefined ? undefined : `${PART_OF}${batch}`

function readEvent(row: Row): RecordedEvent {
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
