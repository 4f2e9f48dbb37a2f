/** The card of a run that shows where its time went, alone or beside another run of the machine. */
import type { Run } from '#engine/inventory/rules/run.ts'
import { divideRun } from '#fleet/run/rules/waterfall.ts'
import { card } from '#kit/web/ui/elements.ts'
import { address, html, type Content } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { runPath } from '../view/run-table.ts'
import { nameOther } from './compared-card.ts'
import { renderWaterfall } from '../view/waterfall-chart.ts'

const t = PAGES.runs.run.waterfall

/** Nothing before the run has ended. `found`: the other run. */
export function renderTimes(context: CurrentContext, run: Run, found: Run | null): Content {
  const { site } = context
  const whole = divideRun(run)
  if (whole === null || whole.bars.length === 0) return null
  const other = found === null ? null : divideRun(found)
  const scale = Math.max(whole.seconds, other?.seconds ?? 0)
  return card({
    title: t.title,
    id: 'times',
    body: html`${renderWaterfall(whole, scale)}
    ${
      found === null || other === null
        ? found === null && renderLinks(site, run)
        : html`<h3>
              <a href="${runPath(found)}">${nameOther(context, run, found)}</a>
            </h3>
            ${renderWaterfall(other, scale)}`
    }`,
  })
}

function renderLinks({ runs }: CurrentContext['site'], run: Run): Content {
  const others = runs.list({ mac: run.mac, result: 'done', limit: 2 }).map((each) => each.run)
  const other = others.find(({ id }) => id !== run.id)
  return other === undefined
    ? null
    : html`<p><a href="${address(runPath(run), { with: other.id })}#compared">${t.compare}</a></p>`
}
