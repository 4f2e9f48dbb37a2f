/** /ui/machines/{mac}/timeline: everything that happened to a machine, newest first, page by page. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { EventCondition } from '#fleet/state/event-rows.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { card, badge } from '#kit/web/ui/elements.ts'
import { address, attributes, html, type Html, type Content } from '#kit/web/ui/html.ts'
import { renderOlder } from '#kit/web/ui/tables.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import {
  readEventWords,
  renderChanges,
  renderWritten,
  type EventWords,
  renderSummary,
} from '#server/current/view/event-list.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { isAlarm } from '#fleet/state/rules/event-table.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { nameActor } from '#server/current/view/actor-name.ts'
import { batchPath } from '#server/current/view/batch-view.ts'

export const timelinePath = (mac: Mac): string => `${machinePath(mac)}/timeline`

/** Equal neighbours become one row; rows after the first `most` are folded. */
export function renderTimeline(
  events: readonly JournalEvent[],
  clock: Clock,
  words: EventWords,
  most = Infinity,
): Html {
  if (events.length === 0) return html`<p class="dim">Nothing of this kind yet.</p>`
  const rows = foldRepeated(events).map(({ newest, oldest, count }) =>
    renderRow(newest, clock, words, count === 1 ? null : { count, since: oldest.ts }),
  )
  return rows.length <= most
    ? renderRows(rows)
    : html`${renderRows(rows.slice(0, most))}
        <details id="earlier">
          <summary>${rows.length - most} more</summary>
          ${renderRows(rows.slice(most))}
        </details>`
}

const renderRows = (rows: readonly Html[]): Html =>
  html`<ol class="rows timeline" aria-label="What happened, newest first">
    ${rows}
  </ol>`

interface Repeated {
  readonly newest: JournalEvent
  readonly oldest: JournalEvent
  readonly count: number
}

/** Changes stand alone. */
export function foldRepeated(events: readonly JournalEvent[]): readonly Repeated[] {
  const folded: Repeated[] = []
  for (const event of events) {
    const last = folded.at(-1)
    if (last !== undefined && isSame(last.oldest, event)) {
      folded[folded.length - 1] = { ...last, oldest: event, count: last.count + 1 }
    } else {
      folded.push({ newest: event, oldest: event, count: 1 })
    }
  }
  return folded
}

const isSame = (one: JournalEvent, other: JournalEvent): boolean =>
  one.kind === other.kind &&
  one.summary === other.summary &&
  one.actor === other.actor &&
  one.acknowledged === other.acknowledged &&
  JSON.stringify(one.details) === JSON.stringify(other.details)

function renderRow(
  event: JournalEvent,
  clock: Clock,
  words: EventWords,
  repeated: { readonly count: number; readonly since: string } | null,
): Html {
  const facts = [
    renderWho(event),
    renderBatch(event),
    repeated === null
      ? null
      : html`${repeated.count} times since ${renderTime(repeated.since, clock)}`,
  ].filter((fact) => fact !== null)
  return html`<li>
    <div class="grow">
      <p>
        ${isAlarm(event.kind) ? html`${badge('failed', 'Failed')} ` : null}${renderSummary(event, event.subject_id)}
        ${renderWritten(event, words)}
      </p>
      ${renderChanges(event, words, true)}
      ${
        facts.length === 0
          ? null
          : html`<p class="small dim">
              ${facts.map((fact, at) => (at === 0 ? fact : html`, ${fact}`))}
            </p>`
      }
    </div>
    <span class="when">${renderTime(event.ts, clock)}</span>
  </li>`
}

/** Their summaries say who it was. */
const SELF: ReadonlySet<string> = new Set(['pxe-client', 'system'])

function renderWho({ actor, source_ip: ip, details }: JournalEvent): Content {
  const armer = details?.['armed_by']
  if (typeof armer === 'string') return html`armed by ${nameActor(armer)}`
  if (SELF.has(actor)) return null
  const name = nameActor(actor)
  return ip === null ? html`by ${name}` : html`by ${name} from ${ip}`
}

function renderBatch({ details }: JournalEvent): Content {
  const batch = details?.['batch']
  return typeof batch === 'string' ? html`<a href="${batchPath(batch)}">part of a batch</a>` : null
}

const ROWS = 100

export const TIMELINE_PAGE = pageAt('/ui/machines/:mac/timeline', 'read', show)

const TIMELINE_VIEWS = {
  all: 'Everything',
  boots: 'Network boots',
  flashes: 'Flashes and captures',
  people: 'What people did',
  power: 'Power',
} as const

type View = keyof typeof TIMELINE_VIEWS

const VIEWS: Readonly<Record<View, EventCondition>> = {
  all: {},
  boots: {
    kinds: ['netboot.*', 'machine.discovered', 'machine.inventory', 'machine.first_boot.*'],
  },
  flashes: { kinds: ['machine.flash*', 'machine.captur*', 'machine.boot*', 'machine.run*'] },
  people: { byPeople: true },
  power: { kinds: ['machine.power.*'] },
}
const NAMES: readonly View[] = ['all', 'boots', 'flashes', 'people', 'power']

async function show(context: CurrentContext): Promise<Answer> {
  const mac = readMac(context.event)
  const machine = await context.site.machines.find(mac)
  if (machine === null) {
    throw refuse(404, `no machine record for ${mac}`, {
      hint: 'It appears when it boots from the network.',
    })
  }
  const view = NAMES.find((name) => name === context.query.get('view')) ?? 'all'
  const before = readBefore(context.query)
  const events = await context.site.journal.list({
    ...VIEWS[view],
    subject_kind: 'machine',
    subject_id: mac,
    before_id: before,
    limit: ROWS,
  })
  const next = events.length === ROWS ? events.at(-1) : undefined
  const name = nameOf(machine)
  return await context.show({
    title: `Timeline of ${name}`,
    heading: html`Timeline of <a href="${machinePath(mac)}"><bdi>${name}</bdi></a>`,
    trail: html`<a href="/ui/machines">Machines</a> / <a href="${machinePath(mac)}">${mac}</a>`,
    actions: html`<a class="button" href="${address('/ui/events', { subject_id: mac })}"
      >Events of this machine</a
    >`,
    body: html`${renderViews(mac, view)}
    ${card({ body: renderTimeline(events, context.clock(), readEventWords(context)) })}
    ${renderOlder({
      path: timelinePath(mac),
      query: view === 'all' ? {} : { view },
      shown: events.length,
      isNewest: before === undefined,
      next: next === undefined ? null : { before_id: next.id },
    })}`,
  })
}

/** Undefined: the newest page. */
function readBefore(query: URLSearchParams): number | undefined {
  const text = /^\d{1,15}$/.exec(query.get('before_id') ?? '')?.[0]
  return text === undefined ? undefined : Number(text)
}

const renderViews = (mac: Mac, shown: View): Html =>
  html`<div class="tools">
    <nav class="views" aria-label="Views">
      ${NAMES.map(
        (name) =>
          html`<a
            href="${address(timelinePath(mac), { view: name === 'all' ? null : name })}"
            ${attributes({ 'aria-current': name === shown ? 'true' : null })}
            >${TIMELINE_VIEWS[name]}</a
          >`,
      )}
    </nav>
  </div>`
