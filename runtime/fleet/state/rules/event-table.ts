/** A recorded event, whether somebody should look at it, and the columns of events as CSV. */
import { renderCsvRow, type Cell } from '#kit/foundation/csv.ts'
import { z } from 'zod'

// The fields that a change has changed, as events record them: what was there before, and what is after.

interface FieldChange {
  readonly before: unknown
  readonly after: unknown
}

export type FieldChanges = Readonly<Record<string, FieldChange>>

type FieldValues = Readonly<Record<string, unknown>>

/** Both have the same fields; secrets must not be among them. */
export function compareFields(before: FieldValues, after: FieldValues): FieldChanges {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(before[name] ?? null) !== JSON.stringify(value ?? null),
  )
  return Object.fromEntries(
    changed.map(([name, value]) => [name, { before: before[name] ?? null, after: value ?? null }]),
  )
}

const Recorded = z.object({
  changes: z.record(z.string(), z.object({ before: z.unknown(), after: z.unknown() })),
})

export const readChanges = (details: FieldValues | null): FieldChanges =>
  Recorded.safeParse(details).data?.changes ?? {}

export function renderValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(renderValue).join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

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

// Decides which of many similar events are recorded one by one and which are only counted.

export interface FloodWindow {
  /** Milliseconds. */
  readonly openedAt: number
  readonly noted: number
  readonly counted: number
}

export const FLOOD_WINDOW_MS = 10_000
export const FLOOD_NOTES = 3

export const isOver = (window: FloodWindow, now: number): boolean =>
  now - window.openedAt >= FLOOD_WINDOW_MS || now < window.openedAt

/** `note`: record the event. */
export function nextWindow(
  window: FloodWindow | null,
  now: number,
): { readonly note: boolean; readonly window: FloodWindow } {
  if (window === null || isOver(window, now)) {
    return { note: true, window: { openedAt: now, noted: 1, counted: 0 } }
  }
  const { openedAt, noted, counted } = window
  return noted < FLOOD_NOTES
    ? { note: true, window: { openedAt, noted: noted + 1, counted } }
    : { note: false, window: { openedAt, noted, counted: counted + 1 } }
}

/** Operators and scripts are always noted, except for logins, which anybody can try. */
export const canFlood = (kind: string, actor: string): boolean =>
  kind.startsWith('auth.') || !(actor === 'operator' || /^(token|person):/.test(actor))
