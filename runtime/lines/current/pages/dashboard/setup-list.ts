/** The checklist of the dashboard: what network boot needs, why, and the button that sets it up. */
import type { ReadinessRow } from '../../../../core/boot/readiness.ts'
import { badge, card, icon, type Tone } from '../../../../web/ui/elements.ts'
import { html, type Html } from '../../../../web/ui/html.ts'

/** Folded once everything is ready. */
export function renderReadiness(rows: readonly ReadinessRow[]): Html {
  const done = rows.filter(({ ok }) => ok).length
  const next = rows.find(({ ok }) => !ok)
  const list = html`<ul class="rows setup">
    ${rows.map((row) => renderRow(row, row === next))}
  </ul>`
  return done === rows.length
    ? html`<details class="card" id="readiness">
        <summary>${icon('done')} Ready to boot machines</summary>
        ${list}
      </details>`
    : card({
        title: `Setup: ${done} of ${rows.length} done`,
        id: 'readiness',
        body: list,
      })
}

const STATES = {
  ready: ['done', 'ready'],
  attention: ['needs-you', 'attention'],
  missing: ['failed', 'missing'],
  unknown: ['ready', 'not seen yet'],
} as const satisfies Record<ReadinessRow['state'], readonly [Tone, string]>

function renderRow({ ok, state, title, text, why, href, action }: ReadinessRow, isNext: boolean) {
  const [tone, word] = STATES[state]
  return html`<li>
    <span class="check-state">${badge(tone, word)}</span>
    <span class="grow"
      ><a href="${href}"><strong>${title}</strong></a> ${text}${
        ok ? null : html`<span class="why dim small">${why}</span>`
      }</span
    >${ok ? null : html`<a class="${isNext ? 'button primary' : 'button'}" href="${href}">${action}</a>`}
  </li>`
}
