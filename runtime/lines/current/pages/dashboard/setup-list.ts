/** The checklist of the dashboard: what network boot needs, why, and the button that sets it up. */
import type { ReadinessRow } from '../../../../core/boot/readiness.ts'
import { badge, card, icon, type Tone } from '../../../../web/ui/elements.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'
import { fill } from '../../../../core/texts/text.ts'

const t = PAGES.dashboard.setup

/** Folded once everything is ready. */
export function renderReadiness(rows: readonly ReadinessRow[]): Html {
  const done = rows.filter(({ ok }) => ok).length
  const next = rows.find(({ ok }) => !ok)
  const list = html`<ul class="rows setup">
    ${rows.map((row) => renderRow(row, row === next))}
  </ul>`
  return done === rows.length
    ? html`<details class="card" id="readiness">
        <summary>${icon('done')} ${t.done}</summary>
        ${list}
      </details>`
    : card({
        title: fill(t.title, { done, total: rows.length }),
        id: 'readiness',
        body: list,
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
