/** The timeline of a machine as a list: contacts, runs, edits, batches, power and proof, in words. */
import type { JournalEvent } from '#fleet/state/journal.ts'
import { isAlarm } from '#fleet/state/rules/event-table.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { PAGES } from '#server/texts/texts.ts'
import { badge } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { nameActor } from '../view/actor-name.ts'
import { batchPath } from '../view/batch-view.ts'
import { renderSummary } from '../view/event-list.ts'
import { renderChanges, renderWritten, type EventWords } from '../view/event-words.ts'

const t = PAGES.machine.timeline

export const timelinePath = (mac: Mac): string => `${machinePath(mac)}/timeline`

/** Equal neighbours become one row, such as the contacts of a machine that boots every minute. */
export const renderTimeline = (
  events: readonly JournalEvent[],
  clock: Clock,
  words: EventWords,
): Html =>
  events.length === 0
    ? html`<p class="dim">${t.none}</p>`
    : html`<ol class="rows timeline" aria-label="${t.label}">
        ${foldRepeated(events).map(({ newest, oldest, count }) =>
          renderRow(newest, clock, words, count === 1 ? null : { count, since: oldest.ts }),
        )}
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
      : fillHtml(t.repeated, { count: repeated.count, time: renderTime(repeated.since, clock) }),
  ].filter((fact) => fact !== null)
  return html`<li>
    <div class="grow">
      <p>
        ${isAlarm(event.kind) ? html`${badge('failed', PAGES.view.eventList.failed)} ` : null}${renderSummary(event, event.subject_id)}
      </p>
      ${renderWritten(event, words)}${renderChanges(event, words, true)}
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
  if (typeof armer === 'string') return fillHtml(t.armedBy, { actor: nameActor(armer) })
  if (SELF.has(actor)) return null
  const name = nameActor(actor)
  return ip === null ? fillHtml(t.by, { actor: name }) : fillHtml(t.byFrom, { actor: name, ip })
}

function renderBatch({ details }: JournalEvent): Content {
  const batch = details?.['batch']
  return typeof batch === 'string' ? html`<a href="${batchPath(batch)}">${t.batch}</a>` : null
}
