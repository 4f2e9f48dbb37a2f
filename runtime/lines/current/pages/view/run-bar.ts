/** How far a run is: the bar that stands in a row, on the machine's page and on the dashboard. */
import { renderHyphens } from '../../../../core/machine/mac.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { renderDuration, renderPercent, renderRate } from '../../../../core/foundation/rate.ts'
import type { Run, RunDisk, RunPhase } from '../../../../core/machine/run.ts'
import { shareOf } from '../../../../core/machine/run-view.ts'
import { renderPartOf, renderSize } from '../../../../core/foundation/size.ts'
import { attributes, html, type Html } from '../../../../web/ui/html.ts'

/** What is going on, in a word. */
export const PHASES: Readonly<Record<RunPhase, string>> = {
  started: 'starting',
  write: 'writing',
  verify: 'verifying',
  sync: 'flushing',
  uefi: 'boot entry',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
}

/** As people know it: its model, else what it is picked by. */
export const shortDisk = ({ model, serial, path }: RunDisk): string =>
  printable(model?.trim() || serial || path || 'a disk')

/** The same with all that tells it from another of its kind. */
export const nameDisk = (disk: RunDisk): string => {
  const { model, serial, path } = disk
  const names = [...new Set([model?.trim(), serial, path].filter(Boolean))]
  return printable(names.join(', ') || 'a disk')
}

/** For example `writing 41%`. */
function sayShortly(run: Run): string {
  const share = shareOf(run)
  const phase = PHASES[run.phase]
  return share === null ? phase : `${phase} ${renderPercent(share)}`
}

/** For example `412 MB/s, 0:07 left, 1.80 of 4.00 GB`: what matters most first, places are narrow. */
function sayFigures({ phase, step_bytes, step_total, rate, eta_seconds }: Run): string {
  if (phase !== 'write' && phase !== 'verify') return ''
  const bytes = step_total === null ? renderSize(step_bytes) : renderPartOf(step_bytes, step_total)
  return [
    ...(rate === null || rate <= 0 ? [] : [renderRate(rate)]),
    ...(eta_seconds === null ? [] : [`${renderDuration(eta_seconds)} left`]),
    bytes,
  ].join(', ')
}

/** `live.js` replaces it by its id as the run goes on. */
export function renderBar(run: Run): Html {
  const share = shareOf(run)
  const said = run.stalled ? `${sayShortly(run)}, no news` : sayShortly(run)
  const figures = run.stalled ? '' : sayFigures(run)
  const bar = {
    max: share === null ? null : 1,
    value: share === null ? null : share.toFixed(4),
    'aria-label': said,
  }
  return html`<span
    id="b-${renderHyphens(run.mac)}"
    class="bar run${run.stalled ? ' stalled' : ''}"
    title="${figures === '' ? said : `${said}, ${figures}`}"
    ><progress ${attributes(bar)}></progress
    ><span><b>${said}</b> <span class="figures">${figures}</span></span></span
  >`
}
