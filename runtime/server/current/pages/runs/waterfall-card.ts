/** The card of a run that shows where its time went, alone or beside another run of the machine. */
import type { Run } from '../../../../engine/inventory/rules/run.ts'
import { parseMac } from '../../../../kit/net/rules/mac.ts'
import { divideRun } from '../../../../fleet/run/rules/waterfall.ts'
import { card } from '../../../../kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content } from '../../../../kit/web/ui/html.ts'
import { renderTime } from '../../../../kit/web/ui/times.ts'
import { PAGES } from '../../../texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { runPath } from '../view/run-table.ts'
import { renderWaterfall } from '../view/waterfall-chart.ts'

const t = PAGES.runs.run.waterfall

/** Renders the card; nothing before the run has ended. */
export function renderTimes(context: CurrentContext, run: Run): Content {
  const { site } = context
  const whole = divideRun(run)
  if (whole === null || whole.bars.length === 0) return null
  const found = findOther(context, run)
  const other = found === null ? null : divideRun(found)
  const scale = Math.max(whole.seconds, other?.seconds ?? 0)
  return card({
    title: t.title,
    id: 'times',
    body: html`${renderWaterfall(whole, scale)}
    ${
      found === null || other === null
        ? renderLinks(site, run)
        : html`<h3>
              <a href="${runPath(found)}">${nameOther(context, run, found)}</a>
            </h3>
            ${renderWaterfall(other, scale)}`
    }`,
  })
}

/** The run that the address names: of this machine by its id, of another one with its MAC before that. */
function findOther({ site, query }: CurrentContext, run: Run): Run | null {
  const [id = '', text] = (query.get('with') ?? '').split('/').toReversed()
  const mac = text === undefined ? null : parseMac(text)
  if (mac?.ok === false) return null
  return id === '' ? null : site.runs.find(mac === null ? run.mac : mac.value, id)
}

function nameOther(context: CurrentContext, run: Run, other: Run): Content {
  const time = renderTime(other.started_at, context.clock())
  return other.mac === run.mac
    ? fillHtml(t.other, { time })
    : fillHtml(t.otherMachine, { time, machine: html`<bdi>${context.nameOf(other.mac)}</bdi>` })
}

/** The newest other run of the machine that can be compared. */
function renderLinks({ runs }: CurrentContext['site'], run: Run): Content {
  const others = runs.list({ mac: run.mac, result: 'done', limit: 2 }).map((each) => each.run)
  const other = others.find(({ id }) => id !== run.id)
  return other === undefined
    ? null
    : html`<p><a href="${address(runPath(run), { with: other.id })}#times">${t.compare}</a></p>`
}
