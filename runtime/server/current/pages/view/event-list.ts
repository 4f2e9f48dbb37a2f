/** Events as a short list: what happened, who did it, when. */
import type { JournalEvent } from '#fleet/state/journal.ts'
import { isAlarm } from '#fleet/state/rules/event-table.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { batchPath, sayBatch } from './batch-view.ts'
import { PAGES } from '#server/texts/texts.ts'
import { icon } from '#kit/web/ui/elements.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'

const t = PAGES.view.eventList

/** `withoutSubject`: the MAC of the page's machine, which is left out. */
export const renderEventList = (
  events: readonly JournalEvent[],
  clock: Clock,
  withoutSubject: string | null = null,
): Html =>
  events.length === 0
    ? html`<p class="dim">${t.none}</p>`
    : html`<ul class="rows">
        ${events.map(
          (event) =>
            html`<li title="${event.kind}">
              <span class="grow"
                >${isAlarm(event.kind) ? html`<span class="badge failed" title="${t.failed}">${icon('failed')}</span> ` : null}${renderSummary(event, withoutSubject)}</span
              >
              <span class="when">${renderTime(event.ts, clock)}</span>
            </li>`,
        )}
      </ul>`

/** The MAC is a link. `withoutSubject`: the MAC of the page's machine, cut off in front. */
export function renderSummary(event: JournalEvent, withoutSubject: string | null = null): Content {
  const { subject_kind: kind, subject_id: id } = event
  return kind === 'batch' && id !== null
    ? html`<a href="${batchPath(id)}">${sayBatch(event)}</a>`
    : renderMachineSummary(event, withoutSubject)
}

function renderMachineSummary(event: JournalEvent, withoutSubject: string | null): Content {
  const { summary, subject_kind: kind, subject_id: id } = event
  if (kind !== 'machine' || id === null || !summary.includes(id) || !parseMac(id).ok) return summary
  const [before = '', ...rest] = summary.split(id)
  const after = rest.join(id)
  if (id === withoutSubject) return before === '' ? upperFirst(after.trim()) : summary
  return html`${before}<a class="mono" href="/ui/machines/${id}">${id}</a>${after}`
}

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
