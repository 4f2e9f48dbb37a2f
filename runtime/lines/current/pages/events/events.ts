/** /ui/events: the journal, with a search, and failures to acknowledge. */
import type { H3Event, HTTPResponse } from 'h3'
import { printableText } from '../../../../core/foundation/printable.ts'
import { json } from '../../../../web/http/answers.ts'
import { badge, banner, emptyState } from '../../../../web/ui/elements.ts'
import { hidden } from '../../../../web/ui/fields.ts'
import { parseEventFilter } from '../../../../web/fleet/events.ts'
import { address, html, type Content, type Html } from '../../../../web/ui/html.ts'
import {
  readListQuery,
  renderOlder,
  renderSearch,
  type ListQuery,
} from '../../../../web/ui/search.ts'
import { renderTable } from '../../../../web/ui/tables.ts'
import { localPath } from '../../../../web/http/local-path.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import type { JournalEvent } from '../../../../services/state/journal.ts'
import { isAlarm } from '../../../../services/state/event-rows.ts'
import { goTo } from '../frame/form-answer.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { formRoute, pageRoute } from '../frame/page-routes.ts'
import { renderSummary } from '../view/event-list.ts'

const PATH = '/ui/events'
const ROWS = 100
const KEPT = ['text', 'kind', 'subject_kind', 'subject_id', 'failed', 'unacknowledged'] as const

const SUBJECTS = ['machine', 'netboot', 'catalog', 'backup', 'settings', 'auth', 'system'] as const

export const eventPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => show(context, event)),
  formRoute('/ui/events/acknowledge', (event, form) => acknowledge(context, event, form)),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const given = event.url.searchParams
  const query = readListQuery(given, KEPT, 200)
  const before = /^\d{1,15}$/.exec(given.get('before_id') ?? '')?.[0] ?? null
  const filter = new URLSearchParams({ ...query, limit: String(ROWS) })
  if (before !== null) filter.set('before_id', before)
  const events = await context.site.journal.list(parseEventFilter(filter))
  const next = events.length === ROWS ? events.at(-1) : undefined
  const alarms = await context.site.journal.countAlarms()
  return await context.show(event, {
    title: 'Events',
    section: PATH,
    messages: html`${messageOf(context, event)}${renderUpdated(given)}`,
    body: html`${renderTools(query, alarms)}
    ${events.length === 0 ? renderNothing(query) : renderEvents(events, context.clock(), query)}
    ${renderOlder({
      path: PATH,
      query,
      shown: events.length,
      isNewest: before === null,
      next: next === undefined ? null : { before_id: next.id },
    })}`,
  })
}

function renderUpdated(query: URLSearchParams): Content {
  const updated = /^\d{1,8}$/.exec(query.get('updated') ?? '')?.[0]
  return updated === undefined ? null : banner('done', `${updated} acknowledged.`)
}

const renderTools = (query: ListQuery, alarms: number): Html =>
  renderSearch({
    path: PATH,
    query,
    name: 'text',
    label: 'Search events',
    placeholder: 'MAC, address, kind or text',
    views: [
      ['All', {}],
      [`Needs attention (${alarms})`, { unacknowledged: '1' }],
      ['Failures', { failed: '1' }],
      ...SUBJECTS.map((name) => [name, { subject_kind: name }] as const),
    ],
  })

const renderNothing = (query: ListQuery): Html =>
  'unacknowledged' in query
    ? emptyState('Nothing needs attention', 'Unacknowledged failures and resets are listed here.')
    : emptyState('No events', 'Everything that machines and operators do is recorded here.')

function renderEvents(events: readonly JournalEvent[], clock: Clock, query: ListQuery): Html {
  const open = events.filter((event) => isAlarm(event.kind) && !event.acknowledged)
  return html`<form method="post" action="/ui/events/acknowledge">
    ${hidden({ back: address(PATH, query) })}
    ${
      open.length === 0
        ? null
        : html`<div class="row">
            <button class="primary">Acknowledge selected</button>
            <span class="dim small"
              >${open.length} on this page need attention and are selected.</span
            >
          </div>`
    }
    ${renderTable({
      caption: 'Events, newest first',
      columns: [{ title: html`<span class="spoken">Select</span>` }, 'Time', 'Event', 'Kind', 'By'],
      rows: events.map((event) => renderRow(event, clock)),
    })}
  </form>`
}

const renderRow = (event: JournalEvent, clock: Clock): Html =>
  html`<tr>
    <td>${renderBox(event)}</td>
    <td class="nowrap small">${renderTime(event.ts, clock)}</td>
    <td>${renderSummary(event)}${renderDetails(event)}</td>
    <td class="nowrap small">${isAlarm(event.kind) ? badge('failed', event.kind) : event.kind}</td>
    <td class="nowrap small">
      ${event.actor}${event.source_ip === null ? null : html` <span class="dim">${event.source_ip}</span>`}
    </td>
  </tr>`

function renderBox(event: JournalEvent): Content {
  if (!isAlarm(event.kind)) return null
  if (event.acknowledged) return html`<span class="dim" title="Acknowledged">✓</span>`
  return html`<input
    type="checkbox"
    name="ids"
    value="${event.id}"
    aria-label="Select event ${event.id}"
    checked
  />`
}

function renderDetails({ details }: JournalEvent): Content {
  if (details === null || Object.keys(details).length === 0) return null
  return html`<details class="small">
    <summary>Details</summary>
    <pre tabindex="0"><code>${printableText(JSON.stringify(details, null, 2))}</code></pre>
  </details>`
}

/** Answers JSON like the deployed server; the form of our page returns to it. */
async function acknowledge(context: PageContext, event: H3Event, form: URLSearchParams) {
  const { site } = context
  const ids = form
    .getAll('ids')
    .map(Number)
    .filter((id) => Number.isSafeInteger(id) && id > 0)
  const acknowledged = !['0', 'false', ''].includes(form.get('acknowledged') ?? '1')
  const updated = await site.journal.acknowledge(ids.slice(0, 1000), acknowledged)
  if (updated > 0) site.feed.announce({ topic: 'event' })
  const back = form.get('back')
  if (back === null) return json({ updated, acknowledged })
  const url = new URL(localPath(back, PATH), 'http://localhost')
  url.searchParams.set('updated', String(updated))
  return goTo(event, `${url.pathname}${url.search}`)
}
