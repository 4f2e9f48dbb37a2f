/** A recorded event, whether somebody should look at it, and the columns of events as CSV. */
import { renderCsvRow, type Cell } from '#kit/foundation/csv.ts'
import { readChanges, renderValue } from './event-changes.ts'

export interface RecordedEvent {
  readonly id: number
  /** ISO time. */
  readonly ts: string
  /** Dotted: `machine.flashed`. */
  readonly kind: string
  readonly subject_kind: string
  readonly subject_id: string | null
  readonly actor: string
  readonly source_ip: string | null
  readonly summary: string
  /** Never with secrets. */
  readonly details: Readonly<Record<string, unknown>> | null
  readonly acknowledged: boolean
}

const LOSSES: ReadonlySet<string> = new Set([
  'system.schema.reset',
  'system.disk.low',
  'system.state.empty',
  'system.state.disarmed',
])

export const isAlarm = (kind: string): boolean =>
  kind.endsWith('failed') || kind.endsWith('.suspected') || LOSSES.has(kind)

const COLUMNS = {
  id: ({ id }) => id,
  time: ({ ts }) => ts,
  kind: ({ kind }) => kind,
  subject_kind: ({ subject_kind: kind }) => kind,
  subject: ({ subject_id: id }) => id,
  actor: ({ actor }) => actor,
  address: ({ source_ip: ip }) => ip,
  summary: ({ summary }) => summary,
  changes: ({ details }) => renderChanges(details),
  acknowledged: ({ acknowledged }) => acknowledged,
  details: ({ details }) => (details === null ? null : JSON.stringify(details)),
} as const satisfies Readonly<Record<string, (event: RecordedEvent) => Cell>>

export const EVENT_HEAD = renderCsvRow(Object.keys(COLUMNS))

export const renderEventRow = (event: RecordedEvent): string =>
  renderCsvRow(Object.values(COLUMNS).map((read) => read(event)))

const renderChanges = (details: RecordedEvent['details']): string =>
  Object.entries(readChanges(details))
    .map(([name, { before, after }]) => `${name}: ${renderValue(before)} → ${renderValue(after)}`)
    .join('; ')
