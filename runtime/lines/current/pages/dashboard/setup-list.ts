/** The checklist of the dashboard: what network boot needs, and whether it is there. */
import type { ReadinessRow } from '../../../../core/boot/readiness.ts'
import { badge, card, icon, type Tone } from '../../../../web/ui/elements.ts'
import { html, type Html } from '../../../../web/ui/html.ts'

/** Folded away once all of it is green. */
export function renderReadiness(rows: readonly ReadinessRow[]): Html {
  const open = rows.filter(({ ok }) => !ok).length
  const list = html`<ul class="rows">
    ${rows.map(renderRow)}
  </ul>`
  return open === 0
    ? html`<details class="card">
        <summary>${icon('done')} Ready to boot machines</summary>
        ${list}
      </details>`
    : card({
        title: `Before machines boot: ${open} of ${rows.length} to do`,
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
