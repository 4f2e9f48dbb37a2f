/** The checklist of the dashboard: what network boot needs, and what is set up. */
import type { ReadinessRow } from '../../../../core/boot/readiness.ts'
import { badge, card, icon, type Tone } from '../../../../web/ui/elements.ts'
import { html, type Html } from '../../../../web/ui/html.ts'

/** Folded once everything is ready. */
export function renderReadiness(rows: readonly ReadinessRow[]): Html {
  const done = rows.filter(({ ok }) => ok).length
  const list = html`<ul class="rows">
    ${rows.map(renderRow)}
  </ul>`
  return done === rows.length
    ? html`<details class="card">
        <summary>${icon('done')} Ready to boot machines</summary>
        ${list}
      </details>`
    : card({
        title: `Setup: ${done} of ${rows.length} done`,
        id: 'readiness',
        body: list,
      })
}

const TONES = {
  ready: 'done',
  attention: 'needs-you',
  missing: 'failed',
} as const satisfies Record<ReadinessRow['state'], Tone>

const renderRow = ({ state, title, text, href }: ReadinessRow): Html =>
  html`<li>
    <span class="check-state">${badge(TONES[state], state)}</span>
    <span class="grow"><a href="${href}">${title}</a> <span class="dim small">${text}</span></span>
  </li>`
