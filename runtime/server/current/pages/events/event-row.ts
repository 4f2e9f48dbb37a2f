/** One event in words: what happened, what it changed, who did it and when; the rest is folded away. */
import { printableText } from '#kit/foundation/printable.ts'
import { isAlarm } from '#fleet/state/rules/event-table.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { badge } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { ListQuery } from '#kit/web/ui/search.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { nameActor, personOfActor } from '../view/actor-name.ts'
import { renderSummary } from '../view/event-list.ts'
import { renderChanges, renderWritten, type EventWords } from '../view/event-words.ts'
import { filterLink } from './event-filter.ts'
import type { FoldedEvent } from './event-groups.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'

const t = PAGES.events.row

interface EventContext extends EventWords {
  readonly clock: Clock
  readonly query: ListQuery
}

export const renderEvent = ({ event, earlier }: FoldedEvent, context: EventContext): Html =>
  html`<li class="event">
    <span class="pick">${renderBox(event)}</span>
    <div class="grow">
      <p>${renderAlarm(event)}${renderName(event, context)}${renderSummary(event)}</p>
      ${renderWritten(event, context)}${renderChanges(event, context)}
      <div class="about small dim">
        <span
          >${fillHtml(t.by, { actor: filterLink(context.query, 'actor', event.actor, nameActor(event.actor)) })}</span
        >
        ${renderArmer(event, context)}
        ${event.source_ip === null ? null : html`<span>${fillHtml(t.from, { address: filterLink(context.query, 'source_ip', event.source_ip) })}</span>`}
        ${renderDetails(event, context)} ${renderEarlier(earlier, context)}
      </div>
    </div>
    <span class="when">${renderTime(event.ts, context.clock)}</span>
  </li>`

const renderAlarm = (event: JournalEvent): Content =>
  isAlarm(event.kind) && !event.acknowledged ? html`${badge('failed', t.attention)} ` : null

/** A summary has only the MAC address, which nobody knows by heart. */
function renderName(
  { subject_kind: kind, subject_id: mac }: JournalEvent,
  words: EventWords,
): Content {
  const name = kind === 'machine' && mac !== null ? words.findName(mac) : null
  return name === null ? null : html`<strong><bdi>${name}</bdi></strong> `
}

function renderBox(event: JournalEvent): Content {
  if (!isAlarm(event.kind)) return null
  if (event.acknowledged) {
    return html`<span class="dim" title="${PAGES.events.selection.acknowledged}"
      ><span aria-hidden="true">✓</span
      ><span class="spoken">${PAGES.events.selection.acknowledged}</span></span
    >`
  }
  return html`<input
    type="checkbox"
    name="ids"
    value="${event.id}"
    aria-label="${fill(PAGES.events.selection.select, { id: event.id })}"
  />`
}

function renderArmer({ details }: JournalEvent, { query }: EventContext): Content {
  const armer = details?.['armed_by']
  if (typeof armer !== 'string') return null
  const person = personOfActor(armer)
  const name = nameActor(armer)
  const actor = person === null ? name : filterLink(query, 'person', person, name)
  return html`<span>${fillHtml(t.armedBy, { actor })}</span>`
}

const renderDetails = ({ kind, details }: JournalEvent, { query }: EventContext): Html =>
  html`<details>
    <summary>${t.details}</summary>
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
    <summary>${fillCount(t.earlier, earlier.length)}</summary>
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
