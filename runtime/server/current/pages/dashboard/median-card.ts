/** The card of the dashboard with the median of each part of the last hundred flashes. */
import { divideRun, listMedians } from '#fleet/run/rules/waterfall.ts'
import type { Runs } from '#fleet/run/runs.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { card, factList } from '#kit/web/ui/elements.ts'
import { html, type Content } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.dashboard.median
const run = PAGES.runs.run.waterfall

const NEWEST = 100

/** Nothing before a flash has ended. */
export function renderMedian(runs: Pick<Runs, 'list'>): Content {
  const found = runs
    .list({ result: 'done', limit: NEWEST })
    .flatMap((each) => (each.run.mode === 'capture' ? [] : (divideRun(each.run) ?? [])))
  if (found.length === 0) return null
  return card({
    title: t.title,
    body: html`${factList(
        listMedians(found).map(({ part, seconds }) => [
          run.parts[part],
          fill(run.figure, { seconds: seconds.toFixed(1) }),
        ]),
      )}
      <p class="small dim">${fillCount(t.text, found.length)}</p>`,
  })
}
