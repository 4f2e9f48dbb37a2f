/** The card of the dashboard with the median of each part of the last hundred flashes. */
import { PART_TITLES, divideRun, listMedians } from '#fleet/run/rules/waterfall.ts'
import type { Runs } from '#fleet/run/runs.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { card, factList } from '#kit/web/ui/elements.ts'
import { html, type Content } from '#kit/web/ui/html.ts'

const NEWEST = 100

/** Nothing before a flash has ended. */
export function renderMedian(runs: Pick<Runs, 'list'>): Content {
  const found = runs
    .list({ result: 'done', limit: NEWEST })
    .flatMap((each) => (each.run.mode === 'capture' ? [] : (divideRun(each.run) ?? [])))
  if (found.length === 0) return null
  return card({
    title: 'Where the time goes',
    body: html`${factList(
        listMedians(found).map(({ part, seconds }) => [
          PART_TITLES[part],
          `${seconds.toFixed(1)} s`,
        ]),
      )}
      <p class="small dim">
        ${fillCount({ one: 'The last flash.', other: 'Medians of the last {count} flashes.' }, found.length)}
      </p>`,
  })
}
