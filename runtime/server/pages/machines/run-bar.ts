/** The progress of a run: a bar for rows, the machine's page and the dashboard. */
import { renderHyphens } from '#kit/net/rules/mac.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderPercent, renderRate } from '#kit/foundation/rate.ts'
import type { Run, RunDisk, RunPhase } from '#engine/inventory/rules/run.ts'
import { shareOf } from '#fleet/run/rules/run-view.ts'
import { renderPartOf, renderSize } from '#kit/foundation/size.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'

const t = PAGES.view.run

const PHASES: Readonly<Record<RunPhase, string>> = t.phases
const CAPTURE_PHASES = { ...PHASES, ...t.capturePhases }

const phasesOf = ({ mode }: Run) => (mode === 'capture' ? CAPTURE_PHASES : PHASES)

/** Its model, else its serial number or path. */
export const shortDisk = ({ model, serial, path }: RunDisk): string =>
  printable(model?.trim() || serial || path || t.someDisk)

export const nameDisk = (disk: RunDisk): string => {
  const { model, serial, path } = disk
  const names = [...new Set([model?.trim(), serial, path].filter(Boolean))]
  return printable(names.join(', ') || t.someDisk)
}

/** `writing 41%`. */
function renderPhase(run: Run): string {
  const share = shareOf(run)
  const phase = phasesOf(run)[run.phase]
  return share === null ? phase : fill(t.progress, { phase, percent: renderPercent(share) })
}

/** `412 MB/s, 0:07 left, 1.80 of 4.00 GB`: most important first, as space is narrow. */
function renderFigures({ phase, step_bytes, step_total, rate, eta_seconds }: Run): string {
  if (phase !== 'write' && phase !== 'verify') return ''
  const bytes = step_total === null ? renderSize(step_bytes) : renderPartOf(step_bytes, step_total)
  return [
    ...(rate === null || rate <= 0 ? [] : [renderRate(rate)]),
    ...(eta_seconds === null ? [] : [fill(t.timeLeft, { time: renderDuration(eta_seconds) })]),
    bytes,
  ].join(', ')
}

/** `live.js` replaces the bar by its id as the run continues. */
export function renderBar(run: Run): Html {
  const share = shareOf(run)
  const progress = renderPhase(run)
  const label = run.stalled ? fill(t.stalled, { progress }) : progress
  const figures = run.stalled ? '' : renderFigures(run)
  const bar = {
    max: share === null ? null : 1,
    value: share === null ? null : share.toFixed(4),
    'aria-label': label,
  }
  return html`<span
    id="b-${renderHyphens(run.mac)}"
    class="bar run${run.stalled ? ' stalled' : ''}"
    title="${figures === '' ? label : `${label}, ${figures}`}"
    ><progress ${attributes(bar)}></progress
    ><span><b>${label}</b> <span class="figures">${figures}</span></span></span
  >`
}
