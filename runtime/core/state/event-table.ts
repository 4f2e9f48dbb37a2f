/** The columns of events as CSV. */
import { renderCsvRow, type Cell } from '../foundation/csv.ts'
import { readChanges, renderValue } from './event-changes.ts'

interface Event {
  readonly id: number
  readonly ts: string
  readonly kind: string
  readonly subject_kind: string
  readonly subject_id: string | null
  readonly actor: string
  readonly source_ip: string | null
  readonly summary: string
  readonly details: Readonly<Record<string, unknown>> | null
  readonly acknowledged: boolean
}

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
} as const satisfies Readonly<Record<string, (event: Event) => Cell>>

export const EVENT_HEAD = renderCsvRow(Object.keys(COLUMNS))

export const renderEventRow = (event: Event): string =>
  renderCsvRow(Object.values(COLUMNS).map((read) => read(event)))

/** `boot_mode: ipxe-exit → flasher-tui; labels: none → rack-1` */
const renderChanges = (details: Event['details']): string =>
  Object.entries(readChanges(details))
    .map(([name, { before, after }]) => `${name}: ${renderValue(before)} → ${renderValue(after)}`)
    .join('; ')
