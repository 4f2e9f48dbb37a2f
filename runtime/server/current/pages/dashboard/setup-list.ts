/** The checklist of the dashboard: what network boot needs, why, and the button that sets it up. */
import type { ReadinessRow } from '../../../../fleet/boot/rules/readiness.ts'
import { badge, card, icon, type Tone } from '../../../../kit/web/ui/elements.ts'
import { html, type Html } from '../../../../kit/web/ui/html.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill, fillCount } from '../../../../kit/texts/text.ts'

const t = PAGES.dashboard.setup

/** Folded once everything is ready; after the first flash, what is ready is folded in any case. */
export function renderReadiness(rows: readonly ReadinessRow[], hasFlashed: boolean): Html {
  const [ready, open] = [rows.filter(({ ok }) => ok), rows.filter(({ ok }) => !ok)]
  const list = (shown: readonly ReadinessRow[]) =>
    html`<ul class="rows setup">
      ${shown.map((row) => renderRow(row, row === open[0]))}
    </ul>`
  if (open.length === 0) {
    return html`<details class="card" id="readiness">
      <summary>${icon('done')} ${t.done}</summary>
      ${list(rows)}
    </details>`
  }
  const isFolded = hasFlashed && ready.length > 0
  return card({
    title: fill(t.title, { done: ready.length, total: rows.length }),
    id: 'readiness',
    body: isFolded
      ? html`${list(open)}
          <details>
            <summary>${fillCount(t.ready, ready.length)}</summary>
            ${list(ready)}
          </details>`
      : list(rows),
  })
}

const TONES = {
  ready: 'done',
  attention: 'needs-you',
  missing: 'needs-you',
  unknown: 'ready',
} as const satisfies Record<ReadinessRow['state'], Tone>

function renderRow({ ok, state, title, text, why, href, action }: ReadinessRow, isNext: boolean) {
  return html`<li>
    <span class="check-state">${badge(TONES[state], t.states[state])}</span>
    <span class="grow"
      ><a href="${href}"><strong>${title}</strong></a> ${text}${
        ok ? null : html`<span class="why dim small">${why}</span>`
      }</span
    >${ok ? null : html`<a class="${isNext ? 'button primary' : 'button'}" href="${href}">${action}</a>`}
  </li>`
}
