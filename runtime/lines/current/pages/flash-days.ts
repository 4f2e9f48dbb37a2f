/** How many flashes ended well on each of the last thirty days, drawn as bars. */
import type { JournalEvent } from '../../../services/journal.ts'
import { html, type Html } from '../../../web/html.ts'
import type { Clock } from '../../../web/times.ts'

const DAYS = 30
const DAY_MS = 86_400_000
const [WIDTH, HEIGHT, FOOT] = [600, 96, 16]

export interface Day {
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

export function renderDays(days: readonly Day[], _clock: Clock): Html {
  const total = days.reduce((sum, { count }) => sum + count, 0)
  const most = Math.max(1, ...days.map(({ count }) => count))
  const step = WIDTH / days.length
  const words = `${total} in 30 days, at most ${total === 0 ? 0 : most} on one`
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${words}">
      ${days.map(({ date, count }, at) => {
        const height = count === 0 ? 1 : Math.max(4, ((HEIGHT - FOOT) * count) / most)
        return html`<rect
          x="${(at * step + 2).toFixed(1)}"
          y="${(HEIGHT - FOOT - height).toFixed(1)}"
          width="${(step - 4).toFixed(1)}"
          height="${height.toFixed(1)}"
          rx="1"
          ><title>${date}: ${count}</title></rect
        >`
      })}
      <text x="2" y="${HEIGHT - 2}">${days[0]?.date}</text>
      <text x="${WIDTH - 2}" y="${HEIGHT - 2}" text-anchor="end">today</text>
    </svg>
    <p class="dim small">${words}</p>`
}
