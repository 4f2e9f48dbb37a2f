/** What /ui/events shows: the filters of its address, and the form that sets them. */
import type { EventFilter } from '#fleet/state/journal.ts'
import { parseEventFilter } from '#server/routes/events.ts'
import { icon } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { readListQuery, renderCount, searchField, type ListQuery } from '#kit/web/ui/search.ts'
import { readDayRange, renderDayFields, renderDayProblem } from '#server/pages/day-range.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.events.filter

export const PATH = '/ui/events'
export const ROWS = 100
const MAX_LENGTH = 200

const KEPT = [
  'text',
  'subject_kind',
  'failed',
  'unacknowledged',
  'from',
  'to',
  'kind',
  'subject_id',
  'batch',
  'actor',
  'source_ip',
  'person',
  'erased',
] as const

/** Filters that also list the events of a batch's machines. */
const NARROW = ['text', 'kind', 'subject_id', 'batch'] as const

interface EventView {
  readonly query: ListQuery
  readonly filter: EventFilter
  readonly exported: ListQuery
  readonly isNewest: boolean
  /** Why the dates were ignored; null: they were not. */
  readonly problem: string | null
}

/** `from` and `to`: days in the zone of the page, both included. */
export function readEventView(given: URLSearchParams, zone: string): EventView {
  const query = readListQuery(given, KEPT, MAX_LENGTH)
  const { exported, problem } = readDayRange(query, zone)
  const before = readBefore(given)
  const asked = { ...exported, ...foldBatches(query), limit: String(ROWS), ...before }
  const filter = parseEventFilter(new URLSearchParams(asked))
  return { query, filter, exported, isNewest: !('before_id' in before), problem }
}

/** The event where the previous page ended. */
function readBefore(given: URLSearchParams): ListQuery {
  const before_id = /^\d{1,15}$/.exec(given.get('before_id') ?? '')?.[0]
  return before_id === undefined ? {} : { before_id }
}

/** A batch has one line, unless somebody looks for what a machine got. */
const foldBatches = (query: ListQuery): ListQuery =>
  NARROW.some((name) => query[name] !== undefined) ? {} : { folded: '1' }

/** `weekAgo`: a day, for the filter of erased disks. */
export function renderFilters(
  { query, problem }: EventView,
  { alarms, weekAgo }: { readonly alarms: number; readonly weekAgo: string },
): Html {
  return html`<div class="tools">
      <form class="search filters" role="search" action="${PATH}">
        ${searchField({ name: 'text', value: query['text'], label: t.label, placeholder: t.placeholder })}
        ${renderSubjects(query['subject_kind'] ?? '')} ${renderDayFields(query, problem)}
        ${hidden({ ...query, text: null, subject_kind: null, from: null, to: null })}
        <button>${icon('search')}${t.button}</button>
      </form>
      <nav class="views" aria-label="${t.views.label}">
        ${renderView(t.views.all, query, {})}
        ${renderView(t.views.attention, query, { unacknowledged: '1' }, alarms)}
        ${renderView(t.views.failures, query, { failed: '1' })}
        ${renderView(t.views.erased, query, { erased: '1', from: weekAgo })}
      </nav>
    </div>
    ${renderDayProblem(problem)} ${renderChips(query)}`
}

const renderSubjects = (selected: string): Html =>
  html`<select name="subject_kind" aria-label="${t.subject}">
    ${Object.entries(t.subjects).map(
      ([value, text]) =>
        html`<option${attributes({ value, selected: value === selected })}>${text}</option>`,
    )}
  </select>`

const VIEWS = ['failed', 'unacknowledged', 'erased'] as const

function renderView(title: string, query: ListQuery, view: ListQuery, count?: number): Html {
  const isHere = VIEWS.every((name) => (query[name] ?? '') === (view[name] ?? ''))
  // Without the filter of erased disks, its week goes, too.
  const from = query['erased'] === undefined ? query['from'] : null
  const others = { ...query, from, failed: null, unacknowledged: null, erased: null }
  return html`<a
    href="${address(PATH, { ...others, ...view })}"
    ${attributes({ 'aria-current': isHere ? 'true' : null })}
    >${title}${renderCount(count)}</a
  >`
}

function renderChips(query: ListQuery): Content {
  const chips = Object.entries(t.linked).flatMap(([name, title]) =>
    query[name] === undefined ? [] : [{ name, title, value: query[name] }],
  )
  if (chips.length === 0) return null
  return html`<p class="row filters-set">
    ${chips.map(
      ({ name, title, value }) =>
        html`<a class="button chip" href="${address(PATH, { ...query, [name]: null })}"
          ><span>${fillHtml(t.chip, { title, value: html`<strong>${value}</strong>` })}</span>
          <span aria-hidden="true">×</span><span class="spoken">${t.remove}</span></a
        >`,
    )}
  </p>`
}

export const filterLink = (
  query: ListQuery,
  name: keyof typeof t.linked,
  value: string,
  shown: string = value,
): Html => html`<a href="${address(PATH, { ...query, [name]: value })}">${shown}</a>`
