/** /ui/events: what happened, newest first, with filters, exports, and failures to acknowledge. */
import type { Answer } from '#kit/web/answers/answers.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { isAlarm } from '#fleet/state/rules/event-table.ts'
import { json } from '#kit/web/answers/answers.ts'
import { localPath } from '#kit/web/answers/local-path.ts'
import { banner, card, emptyState } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderOlder, type ListQuery } from '#kit/web/ui/search.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { readEventWords } from '../view/event-words.ts'
import { PATH, readEventView, renderFilters, ROWS } from './event-filter.ts'
import { foldSteps } from './event-groups.ts'
import { renderEvent } from './event-row.ts'
import { dayOf, type Clock } from '#kit/web/ui/times.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'

const t = PAGES.events

export const EVENT_PAGES = [pageAt(PATH, show), formAt('/ui/events/acknowledge', acknowledge)]

async function show(context: CurrentContext): Promise<Answer> {
  const given = context.query
  const view = readEventView(given, context.clock().zone)
  const { query } = view
  const events = await context.site.journal.list(view.filter)
  const next = events.length === ROWS ? events.at(-1) : undefined
  const alarms = await context.site.journal.countAlarms()
  return await context.show({
    title: PAGES.frame.titles.events,
    section: PATH,
    actions: html`<a class="button" href="${address('/events.csv', view.exported)}">${t.csv}</a
      ><a class="button" href="${address('/events.json', view.exported)}">${t.json}</a>`,
    messages: html`${context.message()}${renderUpdated(given)}`,
    body: html`${renderFilters(view, { alarms, weekAgo: dayOf(context.clock(), -7) })}
    ${events.length === 0 ? renderNothing(query) : renderEvents(context, events, query)}
    ${renderOlder({
      path: PATH,
      query,
      shown: events.length,
      isNewest: view.isNewest,
      next: next === undefined ? null : { before_id: next.id },
    })}`,
  })
}

function renderUpdated(query: URLSearchParams): Content {
  const updated = /^\d{1,8}$/.exec(query.get('updated') ?? '')?.[0]
  if (updated === undefined) return null
  return updated === '0'
    ? banner('needs-you', t.selection.none)
    : banner('done', fill(t.acknowledged, { count: updated }))
}

function renderNothing(query: ListQuery): Html {
  if ('unacknowledged' in query) {
    return emptyState(t.empty.calm.title, t.empty.calm.text)
  }
  if (Object.keys(query).length === 0) {
    return emptyState(t.empty.none.title, t.empty.none.text)
  }
  return emptyState(
    t.empty.unmatched.title,
    t.empty.unmatched.text,
    html`<a class="button" href="${PATH}">${t.empty.unmatched.all}</a>`,
  )
}

function renderEvents(
  context: CurrentContext,
  events: readonly JournalEvent[],
  query: ListQuery,
): Html {
  const open = events.filter((event) => isAlarm(event.kind) && !event.acknowledged)
  const shown = { clock: context.clock(), query, ...readEventWords(context) }
  return html`<form method="post" action="/ui/events/acknowledge">
      ${hidden({ back: address(PATH, query) })}
      ${
        open.length === 0
          ? null
          : html`<div class="row">
              ${open.map(({ id }) => hidden({ shown: String(id) }))}
              <button>${t.selection.button}</button>
              <button name="all" value="1">${fillCount(t.selection.all, open.length)}</button>
              <span class="dim small">${t.selection.note}</span>
            </div>`
      }
      ${groupByDay(events, shown.clock).map(([title, ofDay]) =>
        card({
          title,
          body: html`<ul class="rows" aria-label="${fill(t.list, { day: title })}">
            ${foldSteps(ofDay).map((folded) => renderEvent(folded, shown))}
          </ul>`,
        }),
      )}
    </form>
    ${renderCurlBlock(context, open.length === 0 ? [] : [callAcknowledge(open)])}`
}

/** Days in the zone of the page; keeps the order. */
function groupByDay(
  events: readonly JournalEvent[],
  clock: Clock,
): readonly (readonly [title: string, events: readonly JournalEvent[]])[] {
  const names = new Map([
    [dayOf(clock), t.days.today],
    [dayOf(clock, -1), t.days.yesterday],
  ])
  const days = Map.groupBy(events, ({ ts }) => dayOf({ ...clock, now: new Date(ts) }))
  return [...days].map(([day, ofDay]) => [names.get(day) ?? day, ofDay])
}

/** All that the page shows: the selection is only in the browser. */
const callAcknowledge = (open: readonly JournalEvent[]): CurlCall => ({
  method: 'POST',
  path: '/events/ack',
  body: { ids: open.map(({ id }) => id) },
  scope: 'machines',
})

/** JSON, as the deployed server answers; our form returns to the page. */
async function acknowledge(context: CurrentContext, form: URLSearchParams) {
  const { site } = context
  const ids = form
    .getAll(form.has('all') ? 'shown' : 'ids')
    .map(Number)
    .filter((id) => Number.isSafeInteger(id) && id > 0)
  const acknowledged = !['0', 'false', ''].includes(form.get('acknowledged') ?? '1')
  const updated = await site.journal.acknowledge(ids.slice(0, 1000), acknowledged)
  if (updated > 0) site.changes.announce({ topic: 'event' })
  const back = form.get('back')
  if (back === null) return json({ updated, acknowledged })
  const url = new URL(localPath(back, PATH), 'http://localhost')
  url.searchParams.set('updated', String(updated))
  return context.goTo(`${url.pathname}${url.search}`)
}
