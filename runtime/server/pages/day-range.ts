/** The range of days by which a list is filtered: what its address asks for, and the two fields that set it. */
import { attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { ListQuery } from '#kit/web/ui/tables.ts'
import { startOfDay } from '#kit/web/ui/times.ts'

export const DAY_NAMES = ['from', 'to'] as const

export interface DayRange {
  /** ISO times, `since` inclusive, `until` exclusive; neither with a problem. */
  readonly range: { readonly since?: string; readonly until?: string }
  /** For exports and filters: the query with those times for its days. */
  readonly exported: ListQuery
  /** Why the days were ignored; null: they were not. */
  readonly problem: string | null
}

/** Days in the zone of the page, both included. */
export function readDayRange({ from, to, ...others }: ListQuery, zone: string): DayRange {
  const since = from === undefined ? undefined : startOfDay(from, zone)
  const until = to === undefined ? undefined : startOfDay(to, zone, 1)
  const problem = describeProblem(since, until)
  const range = problem === null ? { ...(since && { since }), ...(until && { until }) } : {}
  return { range, exported: { ...others, ...range }, problem }
}

const DAYS = {
  from: 'From',
  to: 'To',
  problems: {
    date: 'Enter dates as year-month-day, like 2026-11-22.',
    reversed: 'The first day is after the last one.',
  },
} as const

/** Undefined: not asked for; null: no day. */
function describeProblem(
  since: string | null | undefined,
  until: string | null | undefined,
): string | null {
  if (since === null || until === null) return DAYS.problems.date
  const isReversed = since !== undefined && until !== undefined && until <= since
  return isReversed ? DAYS.problems.reversed : null
}

export const renderDayFields = (query: ListQuery, problem: string | null): Html =>
  html`${DAY_NAMES.map((name) => renderDay(name, query[name], problem))}`

const renderDay = (
  name: (typeof DAY_NAMES)[number],
  value: string | undefined,
  problem: string | null,
): Html =>
  html`<label class="day"
    >${DAYS[name]}
    <input${attributes({
      // A field for dates shows the browser's own order of day and month.
      type: 'text',
      inputmode: 'numeric',
      pattern: '\\d{4}-\\d{2}-\\d{2}',
      placeholder: 'YYYY-MM-DD',
      size: 10,
      maxlength: 10,
      autocomplete: 'off',
      name,
      value,
      'aria-invalid': problem === null ? null : 'true',
      'aria-describedby': problem === null ? null : 'range-error',
    })}
  /></label>`

export const renderDayProblem = (problem: string | null): Content =>
  problem === null ? null : html`<p class="error" id="range-error" role="alert">${problem}</p>`
