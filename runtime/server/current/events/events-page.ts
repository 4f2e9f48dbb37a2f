/** /ui/events: what happened, newest first, with filters, exports, and failures to acknowledge. */
import { type Answer, json } from '#kit/web/answers/answers.ts'
import type { JournalEvent, EventFilter } from '#fleet/state/journal.ts'
import { isAlarm } from '#fleet/state/rules/event-table.ts'
import { localPath } from '#kit/web/answers/checked.ts'
import { banner, card, emptyState, badge, icon } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, html, type Content, type Html, attributes } from '#kit/web/ui/html.ts'
import {
  renderOlder,
  type ListQuery,
  readListQuery,
  renderCount,
  renderDownloads,
  searchField,
} from '#kit/web/ui/tables.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import {
  readEventWords,
  renderSummary,
  renderChanges,
  renderWritten,
  type EventWords,
} from '#server/current/view/event-list.ts'
import { dayOf, renderExact, type Clock, renderTime } from '#kit/web/ui/times.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { printableText } from '#kit/foundation/printable.ts'
import { nameActor, personOfActor } from '#server/current/view/actor-name.ts'
import { parseEventFilter } from '#server/routes/events.ts'
import { readDayRange, renderDayFields, renderDayProblem } from '#server/pages/day-range.ts'

// Events as the page groups them: what a machine reported on its way is folded below where it led to.

/** `earlier`: the machine's reports before it, newest first. */
interface FoldedEvent {
  readonly event: JournalEvent
  readonly earlier: readonly JournalEvent[]
}

const STEPS: ReadonlySet<string> = new Set([
  'machine.discovered',
  'machine.inventory',
  'netboot.pxe.offered',
  'netboot.flasher.armed',
  'netboot.pxe.plan',
  'machine.token.missing',
  'machine.first_boot.fetched',
  'machine.flash_started',
  'machine.capture_started',
])

/**
 * Folds steps of a flash below its end, for example. Ends of flashes, acts of others and failures
 * to acknowledge stay visible. `events`: newest first.
 */
export function foldSteps(events: readonly JournalEvent[]): readonly FoldedEvent[] {
  const folded: FoldedEvent[] = []
  /** By machine: where its next older step is folded. */
  const open = new Map<string, JournalEvent[]>()
  for (const event of events) {
    const { subject_id: subject, actor } = event
    const isOfMachine = subject !== null && actor === 'pxe-client'
    const above = isOfMachine && isStep(event) ? open.get(subject) : undefined
    if (above !== undefined) {
      above.push(event)
      continue
    }
    const earlier: JournalEvent[] = []
    folded.push({ event, earlier })
    if (subject === null) continue
    if (isOfMachine) open.set(subject, earlier)
    else open.delete(subject)
  }
  return folded
}

const isStep = ({ kind }: JournalEvent): boolean => STEPS.has(kind) && !isAlarm(kind)

const PATH = '/ui/events'
const ROWS = 100
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
  'routine',
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
function readEventView(given: URLSearchParams, zone: string): EventView {
  const query = readListQuery(given, KEPT, MAX_LENGTH)
  const { exported, problem } = readDayRange(query, zone)
  const before = readBefore(given)
  const asked = { ...exported, ...foldBatches(query), limit: String(ROWS), ...before }
  const withoutRoutine = ASKING.every((name) => query[name] === undefined)
  const filter = { ...parseEventFilter(new URLSearchParams(asked)), withoutRoutine }
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
function renderFilters(
  { query, filter, problem }: EventView,
  { alarms, weekAgo }: { readonly alarms: number; readonly weekAgo: string },
): Html {
  return html`<div class="tools">
      <form class="search filters" role="search" action="${PATH}">
        ${searchField({ name: 'text', value: query['text'], label: 'Search events', placeholder: 'MAC, address, kind or text' })}
        ${renderSubjects(query['subject_kind'] ?? '')} ${renderDayFields(query, problem)}
        ${hidden({ ...query, text: null, subject_kind: null, from: null, to: null })}
        <button>${icon('search')}Search</button>
      </form>
      <nav class="views" aria-label="Views">
        ${renderView('All', query, {})}
        ${renderView('Needs attention', query, { unacknowledged: '1' }, alarms)}
        ${renderView('Failures', query, { failed: '1' })}
        ${renderView('Erased last week', query, { erased: '1', from: weekAgo })}
        ${filter.withoutRoutine === true || 'routine' in query ? renderRoutine(query) : null}
      </nav>
    </div>
    ${renderDayProblem(problem)} ${renderChips(query)}`
}

const SUBJECTS = {
  '': 'Everything',
  machine: 'Machines',
  batch: 'Batches',
  netboot: 'Network boot',
  catalog: 'Images',
  backup: 'Backups',
  settings: 'Settings',
  auth: 'Logins and tokens',
  system: 'Server',
} as const

const renderSubjects = (selected: string): Html =>
  html`<select name="subject_kind" aria-label="Events about">
    ${Object.entries(SUBJECTS).map(
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

const LINKED = {
  kind: 'Kind',
  subject_id: 'About',
  batch: 'Batch',
  actor: 'By',
  person: 'Person',
  source_ip: 'Address',
} as const

/** Who looks for one of them finds logins and the steps of backups, too. */
const ASKING = ['routine', 'text', 'subject_kind', ...Object.keys(LINKED)]

const renderRoutine = ({ routine, ...others }: ListQuery): Html =>
  html`<a href="${address(PATH, routine === undefined ? { ...others, routine: '1' } : others)}"
    >${routine === undefined ? 'Show' : 'Hide'} logins and backup steps</a
  >`

function renderChips(query: ListQuery): Content {
  const chips = Object.entries(LINKED).flatMap(([name, title]) =>
    query[name] === undefined ? [] : [{ name, title, value: query[name] }],
  )
  if (chips.length === 0) return null
  return html`<p class="row filters-set">
    ${chips.map(
      ({ name, title, value }) =>
        html`<a class="button chip" href="${address(PATH, { ...query, [name]: null })}"
          ><span>${title}: <strong>${value}</strong></span> <span aria-hidden="true">×</span
          ><span class="spoken">Remove this filter</span></a
        >`,
    )}
  </p>`
}

const filterLink = (
  query: ListQuery,
  name: keyof typeof LINKED,
  value: string,
  shown: string = value,
): Html => html`<a href="${address(PATH, { ...query, [name]: value })}">${shown}</a>`

/** One event in words: what happened, what it changed, who did it and when; the rest is folded away. */
interface EventContext extends EventWords {
  readonly clock: Clock
  readonly query: ListQuery
}

const renderEvent = ({ event, earlier }: FoldedEvent, context: EventContext): Html =>
  html`<li class="event">
    <span class="pick">${renderBox(event)}</span>
    <div class="grow">
      <p>
        ${renderAlarm(event)}${renderName(event, context)}${renderSummary(event)}
        ${renderWritten(event, context)}
      </p>
      ${renderChanges(event, context)}
    </div>
    <div class="about small dim">
      <span>by ${filterLink(context.query, 'actor', event.actor, nameActor(event.actor))}</span>
      ${renderArmer(event, context)}
      ${event.source_ip === null ? null : html`<span>from ${filterLink(context.query, 'source_ip', event.source_ip)}</span>`}
      ${renderDetails(event, context)} ${renderEarlier(earlier, context)}
    </div>
    <span class="when">${renderWhen(event.ts, context.clock)}</span>
  </li>`

/** The day stands above. */
function renderWhen(iso: string, clock: Clock): Html {
  const at = new Date(iso)
  if (dayOf({ ...clock, now: at }) === dayOf(clock)) return renderTime(iso, clock)
  const exact = renderExact(at, clock.zone)
  return html`<time class="exact" datetime="${iso}" title="${exact}">${exact.slice(11, 16)}</time>`
}

const renderAlarm = (event: JournalEvent): Content =>
  isAlarm(event.kind) && !event.acknowledged ? html`${badge('failed', 'needs attention')} ` : null

/** A summary has only the MAC address, which nobody knows by heart. */
function renderName({ subject_id: mac }: JournalEvent, words: EventWords): Content {
  const name = mac === null ? null : words.findName(mac)
  return name === null ? null : html`<strong><bdi>${name}</bdi></strong> `
}

function renderBox(event: JournalEvent): Content {
  if (!isAlarm(event.kind)) return null
  if (event.acknowledged) {
    return html`<span class="dim" title="Acknowledged"
      ><span aria-hidden="true">✓</span><span class="spoken">Acknowledged</span></span
    >`
  }
  return html`<input
    type="checkbox"
    name="ids"
    value="${event.id}"
    aria-label="Select event ${event.id}"
  />`
}

function renderArmer({ details }: JournalEvent, { query }: EventContext): Content {
  const armer = details?.['armed_by']
  if (typeof armer !== 'string') return null
  const person = personOfActor(armer)
  const name = nameActor(armer)
  const actor = person === null ? name : filterLink(query, 'person', person, name)
  return html`<span>armed by ${actor}</span>`
}

const renderDetails = ({ kind, details }: JournalEvent, { query }: EventContext): Html =>
  html`<details>
    <summary>Details</summary>
    <p>${filterLink(query, 'kind', kind)}</p>
    ${
      details === null || Object.keys(details).length === 0
        ? null
        : html`<pre
            tabindex="0"
          ><code>${printableText(JSON.stringify(details, null, 2))}</code></pre>`
    }
  </details>`

function renderEarlier(earlier: readonly JournalEvent[], context: EventContext): Content {
  if (earlier.length === 0) return null
  return html`<details>
    <summary>
      ${fillCount({ one: '{count} earlier step of this machine', other: '{count} earlier steps of this machine' }, earlier.length)}
    </summary>
    <ul class="rows">
      ${earlier.map(
        (event) =>
          html`<li>
            <div class="grow">
              <p>${renderSummary(event)}</p>
              <div class="about small dim">${renderDetails(event, context)}</div>
            </div>
            <span class="when">${renderTime(event.ts, context.clock)}</span>
          </li>`,
      )}
    </ul>
  </details>`
}

export const EVENT_PAGES = [
  pageAt(PATH, 'read', show, { reach: 'list' }),
  formAt('/ui/events/acknowledge', 'machines', acknowledge, { reach: 'list' }),
]

async function show(context: CurrentContext): Promise<Answer> {
  const given = context.query
  const view = readEventView(given, context.clock().zone)
  const { query } = view
  const events = await context.site.journal.list(view.filter)
  const next = events.length === ROWS ? events.at(-1) : undefined
  const alarms = await context.site.journal.countAlarms()
  return await context.show({
    title: 'Events',
    actions: renderDownloads('/events', view.exported),
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
    ? banner('needs-you', 'No event was selected, so none was acknowledged.')
    : banner('done', `${updated} acknowledged.`)
}

function renderNothing(query: ListQuery): Html {
  if ('unacknowledged' in query) {
    return emptyState(
      'Nothing needs attention',
      'Unacknowledged failures and resets are listed here.',
    )
  }
  if (Object.keys(query).length === 0) {
    return emptyState('No events', 'Everything that machines and operators do is recorded here.')
  }
  return emptyState(
    'No matching events',
    'Remove a filter or clear the search.',
    html`<a class="button" href="${PATH}">Show all events</a>`,
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
              <button>Acknowledge selected</button>
              <button name="all" value="1">
                ${fillCount({ one: 'Acknowledge the one on this page', other: 'Acknowledge all {count} on this page' }, open.length)}
              </button>
              <span class="dim small">Acknowledge failures that you have handled.</span>
            </div>`
      }
      ${groupByDay(events, shown.clock).map(([title, ofDay]) =>
        card({
          title,
          body: html`<ul class="rows" aria-label="Events, newest first: ${title}">
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
    [dayOf(clock), 'today'],
    [dayOf(clock, -1), 'yesterday'],
  ])
  const days = Map.groupBy(events, ({ ts }) => dayOf({ ...clock, now: new Date(ts) }))
  return [...days].map(([day, ofDay]) => {
    const name = names.get(day)
    return [name === undefined ? day : `${day}, ${name}`, ofDay]
  })
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
