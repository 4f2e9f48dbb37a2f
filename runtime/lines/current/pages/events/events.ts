/** /ui/events: what was recorded, found by words and kind, and acknowledged. */
import type { H3Event, HTTPResponse } from 'h3'
import { printableText } from '../../../../core/foundation/printable.ts'
import { json } from '../../../../web/http/answers.ts'
import { badge, banner, emptyState } from '../../../../web/ui/elements.ts'
import { hidden } from '../../../../web/ui/fields.ts'
import { parseEventFilter } from '../../../../web/fleet/events.ts'
import { address, attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { localPath } from '../../../../web/http/local-path.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import type { JournalEvent } from '../../../../services/state/journal.ts'
import { isAlarm } from '../../../../services/state/event-rows.ts'
import { goTo } from '../frame/form-answer.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { renderSummary } from '../view/event-list.ts'

const PATH = '/ui/events'
const ROWS = 100
const KEPT = ['text', 'kind', 'subject_kind', 'subject_id', 'failed', 'unacknowledged'] as const

const SUBJECTS = ['machine', 'netboot', 'catalog', 'backup', 'settings', 'auth', 'system'] as const

type Kept = Readonly<Record<string, string>>

export const eventPages = (context: PageContext): readonly Route[] => [
  { method: 'GET', path: PATH, access: 'page', handle: (event) => show(context, event) },
  {
    method: 'POST',
    path: '/ui/events/acknowledge',
    access: 'page',
    takes: 'form',
    handle: (event, form) => acknowledge(context, event, form),
  },
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const given = event.url.searchParams
  const kept = keptOf(given)
  const before = /^\d{1,15}$/.exec(given.get('before_id') ?? '')?.[0] ?? null
  const query = new URLSearchParams({ ...kept, limit: String(ROWS) })
  if (before !== null) query.set('before_id', before)
  const events = await context.site.journal.list(parseEventFilter(query))
  const alarms = await context.site.journal.countAlarms()
  return await context.show(event, {
    title: 'Events',
    section: PATH,
    messages: html`${messageOf(context, event)}${renderUpdated(given)}`,
    body: html`${renderTools(kept, alarms)}
    ${events.length === 0 ? renderNothing(kept) : renderTable(events, context.clock(), kept)}
    ${renderTurns(kept, events, before !== null)}`,
  })
}

function renderUpdated(query: URLSearchParams): Content {
  const updated = /^\d{1,8}$/.exec(query.get('updated') ?? '')?.[0]
  return updated === undefined ? null : banner('done', `${updated} acknowledged.`)
}

/** By number, so that new events do not push rows onto the next page. */
function renderTurns(kept: Kept, events: readonly JournalEvent[], isLater: boolean): Html {
  const next = events.length === ROWS ? events.at(-1)?.id : undefined
  return html`<nav class="pager" aria-label="Pages">
    <span>${events.length} shown</span>
    ${isLater ? html`<a href="${address(PATH, kept)}">Newest</a>` : null}
    ${next === undefined ? null : html`<a href="${address(PATH, { ...kept, before_id: next })}" rel="next">Older</a>`}
  </nav>`
}

const keptOf = (query: URLSearchParams): Kept =>
  Object.fromEntries(
    KEPT.flatMap((name) => {
      const value = query.get(name)
      return value ? [[name, value.slice(0, 200)]] : []
    }),
  )

function renderTools(kept: Kept, alarms: number): Html {
  const view = (title: string, query: Kept) =>
    html`<a
      href="${address(PATH, query)}"
      ${attributes({ 'aria-current': isSame(kept, query) ? 'true' : null })}
      >${title}</a
    >`
  return html`<div class="tools">
    <form class="search" role="search" action="${PATH}">
      <input
        type="search"
        name="text"
        value="${kept['text'] ?? ''}"
        aria-label="Search events"
        placeholder="MAC, address, kind or words"
        autocomplete="off"
      />
      ${hidden({ subject_kind: kept['subject_kind'], subject_id: kept['subject_id'], unacknowledged: kept['unacknowledged'] })}
      <button>Search</button>
    </form>
    <nav class="views" aria-label="Views">
      ${view('All', {})} ${view(`Needs a look (${alarms})`, { unacknowledged: '1' })}
      ${view('Failures', { failed: '1' })}
      ${SUBJECTS.map((name) => view(name, { subject_kind: name }))}
    </nav>
  </div>`
}

const isSame = (a: Kept, b: Kept) =>
  Object.entries(a).toSorted().join() === Object.entries(b).toSorted().join()

const renderNothing = (kept: Kept): Html =>
  'unacknowledged' in kept
    ? emptyState(
        'Nothing needs a look',
        'Failures and resets that nobody has acknowledged stand here.',
      )
    : emptyState('No events', 'Whatever machines and operators do is recorded here.')

function renderTable(events: readonly JournalEvent[], clock: Clock, kept: Kept): Html {
  const open = events.filter((event) => isAlarm(event.kind) && !event.acknowledged)
  return html`<form method="post" action="/ui/events/acknowledge">
    ${hidden({ back: address(PATH, kept) })}
    ${
      open.length === 0
        ? null
        : html`<div class="row">
            <button class="primary">Acknowledge selected</button>
            <span class="dim small"
              >${open.length} on this page need a look; they are selected.</span
            >
          </div>`
    }
    <div class="table">
      <table>
        <caption class="spoken">
          Events, newest first
        </caption>
        <thead>
          <tr>
            <th scope="col"><span class="spoken">Select</span></th>
            <th scope="col">When</th>
            <th scope="col">What happened</th>
            <th scope="col">Kind</th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          ${events.map((event) => renderRow(event, clock))}
        </tbody>
      </table>
    </div>
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
    aria-label="Event ${event.id}"
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

/** JSON as the deployed server answers; our own page is led back to. */
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
