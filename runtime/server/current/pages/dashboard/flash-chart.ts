/** The number of successful flashes on each of the last thirty days, as a bar chart. */
import type { JournalEvent } from '../../../../fleet/state/journal.ts'
import { html, type Html } from '../../../../kit/web/ui/html.ts'
import type { Clock } from '../../../../kit/web/ui/times.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'

const t = PAGES.dashboard.chart

const DAYS = 30
const DAY_MS = 86_400_000
/** In units of the drawing, which scales to its place. */
const [STEP, HEIGHT] = [10, 80]

interface Day {
  /** `2026-11-21` in the zone of the pages. */
  readonly date: string
  readonly count: number
}

/** The oldest first; the last one is today. */
export function countDays(
  events: readonly Pick<JournalEvent, 'ts'>[],
  clock: Clock,
): readonly Day[] {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: clock.zone, dateStyle: 'short' })
  const byDate = Map.groupBy(events, ({ ts }) => format.format(new Date(ts)))
  return Array.from({ length: DAYS }, (_, at) => {
    const date = format.format(new Date(clock.now.getTime() - (DAYS - 1 - at) * DAY_MS))
    return { date, count: byDate.get(date)?.length ?? 0 }
  })
}

export function renderDays(days: readonly Day[]): Html {
  const total = days.reduce((sum, { count }) => sum + count, 0)
  const max = Math.max(1, ...days.map(({ count }) => count))
  const summary = total === 0 ? t.none : fill(t.summary, { total, max })
  return html`<svg
      class="chart"
      viewBox="0 0 ${days.length * STEP} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${summary}"
    >
      ${days.map(({ date, count }, at) => {
        const height = count === 0 ? 1 : Math.max(4, Math.round((HEIGHT * count) / max))
        return html`<rect
          x="${at * STEP + 1}"
          y="${HEIGHT - height}"
          width="${STEP - 2}"
          height="${height}"
        >
          <title>${fill(t.day, { date, count })}</title>
        </rect>`
      })}
    </svg>
    <p class="axis small dim">
      <span>${days[0]?.date}</span><span>${summary}</span><span>${t.today}</span>
    </p>`
}
