/** One event in words: what happened, what it changed, who did it and when; the rest is folded away. */
import { printableText } from '../../../../kit/foundation/printable.ts'
import { readChanges, renderValue } from '../../../../fleet/state/rules/event-changes.ts'
import type { Run } from '../../../../engine/inventory/rules/run.ts'
import { isAlarm } from '../../../../fleet/state/event-rows.ts'
import type { JournalEvent } from '../../../../fleet/state/journal.ts'
import { badge, shorten } from '../../../../kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import type { ListQuery } from '../../../../kit/web/ui/search.ts'
import { renderTime, type Clock } from '../../../../kit/web/ui/times.ts'
import { nameActor, personOfActor } from '../view/actor-name.ts'
import { renderSummary } from '../view/event-list.ts'
import { renderWhat, runPath } from '../view/run-table.ts'
import { MODE_TEXTS } from '../machines/mode-cards.ts'
import { filterLink } from './event-filter.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'

const t = PAGES.events.row

interface EventContext {
  readonly clock: Clock
  readonly query: ListQuery
  /** The name of an image; null: nobody knows it any more. */
  findImage(ref: string): string | null
  /** The disk of a machine that is selected by this name, in words; null: nobody knows it. */
  findDisk(mac: string, name: string): string | null
  /** The run that an event of a machine names; null: there is none any more. */
  findRun(mac: string, id: string): Run | null
  /** The title of a setting; null: it is none. */
  findSetting(name: string): string | null
}

export const renderEvent = (event: JournalEvent, context: EventContext): Html =>
  html`<li class="event">
    <span class="pick">${renderBox(event)}</span>
    <div class="grow">
      <p>${renderAlarm(event)}${renderSummary(event)}</p>
      ${renderRun(event, context)}${renderChanges(event, context)}
      <div class="about small dim">
        ${filterLink(context.query, 'kind', event.kind)}
        <span
          >${fillHtml(t.by, { actor: filterLink(context.query, 'actor', event.actor, nameActor(event.actor)) })}</span
        >
        ${renderArmer(event, context)}
        ${event.source_ip === null ? null : html`<span>${fillHtml(t.from, { address: filterLink(context.query, 'source_ip', event.source_ip) })}</span>`}
        ${renderDetails(event)}
      </div>
    </div>
    <span class="when">${renderTime(event.ts, context.clock)}</span>
  </li>`

const renderAlarm = (event: JournalEvent): Content =>
  isAlarm(event.kind) && !event.acknowledged ? html`${badge('failed', t.attention)} ` : null

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

/** Which image was written to which disk, where the summary does not say so. */
function renderRun(event: JournalEvent, { findRun }: EventContext): Content {
  const { subject_kind: kind, subject_id: mac, details, summary } = event
  const id = details?.['run']
  if (kind !== 'machine' || mac === null || typeof id !== 'string') return null
  const run = findRun(mac, id)
  if (run === null || (run.image !== null && summary.includes(run.image.name ?? ''))) return null
  const words = html`<a href="${runPath(run)}">${renderWhat(run, true)}</a>`
  return html`<p class="small">${fillHtml(t.run, { run: words })}</p>`
}

/** Who had the machine do what it reports. */
function renderArmer({ details }: JournalEvent, { query }: EventContext): Content {
  const armer = details?.['armed_by']
  if (typeof armer !== 'string') return null
  const person = personOfActor(armer)
  const name = nameActor(armer)
  const actor = person === null ? name : filterLink(query, 'person', person, name)
  return html`<span>${fillHtml(t.armedBy, { actor })}</span>`
}

/** The texts of the fields of a machine's record. */
const FIELDS: ReadonlyMap<string, string> = new Map(Object.entries(t.fields))

const MAX_CHANGES = 4
const MAX_CHARACTERS = 60

function renderChanges(event: JournalEvent, context: EventContext): Content {
  const { details, subject_id: subject } = event
  const changes = Object.entries(readChanges(details))
  if (changes.length === 0) return null
  const more = changes.length - MAX_CHANGES
  return html`<ul class="changes small">
    ${changes.slice(0, MAX_CHANGES).map(
      ([name, { before, after }]) =>
        html`<li>
          <span class="dim">${titleOf(name, context)}</span>
          ${renderSide('before', valueOf(name, before, subject, context))}
          <span class="dim" aria-hidden="true">→</span>
          ${renderSide('after', valueOf(name, after, subject, context))}
        </li>`,
    )}
    ${more > 0 ? html`<li class="dim">${fill(t.more, { count: more })}</li>` : null}
  </ul>`
}

const titleOf = (name: string, { findSetting }: EventContext): string =>
  FIELDS.get(name) ?? findSetting(name) ?? name

function valueOf(
  name: string,
  value: unknown,
  subject: string | null,
  { findImage, findDisk }: EventContext,
): string {
  const words = printableText(renderValue(value))
  if (typeof value !== 'string') return words
  switch (name) {
    case 'bty_image_ref':
      return printableText(findImage(value) ?? shorten(value, 17))
    case 'target_disk_serial':
      return printableText((subject === null ? null : findDisk(subject, value)) ?? words)
    case 'boot_mode':
      return MODE_TITLES.get(value) ?? words
    default:
      return words
  }
}

const MODE_TITLES: ReadonlyMap<string, string> = new Map(
  Object.entries(MODE_TEXTS).map(([mode, { title }]) => [mode, title]),
)

const renderSide = (side: 'before' | 'after', text: string): Html => {
  const shown = shorten(text, MAX_CHARACTERS)
  const title = shown === text ? null : text
  return side === 'before'
    ? html`<span class="spoken">${t.before}</span> <del title="${title}">${shown}</del>`
    : html`<span class="spoken">${t.after}</span> <ins title="${title}">${shown}</ins>`
}

function renderDetails({ details }: JournalEvent): Content {
  if (details === null || Object.keys(details).length === 0) return null
  return html`<details>
    <summary>${t.details}</summary>
    <pre tabindex="0"><code>${printableText(JSON.stringify(details, null, 2))}</code></pre>
  </details>`
}
