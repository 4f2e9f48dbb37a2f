/** The card of the dashboard with the trends of the last two weeks: how many flashes succeeded, and how long they took. */
import { renderDuration } from '#kit/foundation/rate.ts'
import { countTrends, type Trends } from '#fleet/run/rules/trends.ts'
import { fill } from '#kit/texts/text.ts'
import { card } from '#kit/web/ui/elements.ts'
import { address, attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { dayOf, startOfDay } from '#kit/web/ui/times.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.dashboard.trends

const DAYS = 14
/** In units of the drawings, which scale to their place. */
const [STEP, HEIGHT] = [20, 60]

/** Nothing before a flash has ended in these days. */
export function renderTrends(context: CurrentContext): Content {
  const clock = context.clock()
  const days = Array.from({ length: DAYS }, (_, at) => dayOf(clock, at - DAYS + 1))
  const since = startOfDay(days[0] ?? '', clock.zone)
  const flashes = since === null ? [] : context.site.runs.listEndedFlashes(since)
  if (flashes.length === 0) return null
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: clock.zone, dateStyle: 'short' })
  const trends = countTrends(flashes, days, (iso) => format.format(new Date(iso)))
  return card({
    title: t.title,
    id: 'trends',
    body: html`<h3>${t.success}</h3>
      ${renderSuccess(trends.days)}
      <h3>${t.duration}</h3>
      ${renderMedians(trends.days)} ${renderDays(trends.days)}
      ${renderNames(t.byImage, trends.images, 'image')}
      ${renderNames(t.byModel, trends.models, 'q')}`,
  })
}

type Days = Trends['days']

const describe = ({ name, done, failed, medianSeconds }: Days[number]): string =>
  medianSeconds === null
    ? fill(t.dayWithout, { date: name, done, all: done + failed })
    : fill(t.day, { date: name, done, all: done + failed, time: renderDuration(medianSeconds) })

function renderSuccess(days: Days): Html {
  const most = Math.max(1, ...days.map(({ done, failed }) => done + failed))
  const [done, failed] = [sum(days, 'done'), sum(days, 'failed')]
  const unit = HEIGHT / most
  return html`${renderChart(
    fill(t.successSummary, { done, all: done + failed }),
    days.map((day, at) => {
      const [good, bad] = [day.done * unit, day.failed * unit]
      return html`<g>
        <title>${describe(day)}</title>
        ${renderBar(at, HEIGHT - good, good, null)}
        ${renderBar(at, HEIGHT - good - bad, bad, 'failed')}
      </g>`
    }),
  )}
  ${renderAxis(days, fill(t.successSummary, { done, all: done + failed }))}`
}

function renderMedians(days: Days): Html {
  const medians = days.map(({ medianSeconds }) => medianSeconds ?? 0)
  const longest = Math.max(1, ...medians)
  const summary = fill(t.durationSummary, { time: renderDuration(longest) })
  return html`${renderChart(
    summary,
    days.map((day, at) => {
      const height = (HEIGHT * (day.medianSeconds ?? 0)) / longest
      return html`<g>
        <title>${describe(day)}</title>
        ${renderBar(at, HEIGHT - height, height, null)}
      </g>`
    }),
  )}
  ${renderAxis(days, summary)}`
}

/** The figures of both charts, for those who cannot see them. */
const renderDays = (days: Days): Html =>
  html`<details id="trend-days">
    <summary>${t.table.title}</summary>
    ${renderTable({
      caption: t.title,
      columns: [
        t.table.day,
        numberColumn(t.table.succeeded),
        numberColumn(t.table.failed),
        numberColumn(t.table.median),
      ],
      rows: days.toReversed().map(
        ({ name, done, failed, medianSeconds }) =>
          html`<tr>
            <th scope="row">${name}</th>
            <td class="number" data-label="${t.table.succeeded}">${done}</td>
            <td class="number" data-label="${t.table.failed}">${failed}</td>
            <td class="number" data-label="${t.table.median}">
              ${medianSeconds === null ? '–' : renderDuration(medianSeconds)}
            </td>
          </tr>`,
      ),
    })}
  </details>`

const sum = (days: Days, name: 'done' | 'failed'): number =>
  days.reduce((total, day) => total + day[name], 0)

const renderChart = (label: string, bars: readonly Html[]): Html =>
  html`<svg
    class="chart"
    viewBox="0 0 ${DAYS * STEP} ${HEIGHT}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
  >
    ${bars}
  </svg>`

const renderBar = (at: number, y: number, height: number, tone: 'failed' | null): Html =>
  html`<rect
    ${attributes({ class: tone })}
    x="${at * STEP + 2}"
    y="${y.toFixed(1)}"
    width="${STEP - 4}"
    height="${height.toFixed(1)}"
  ></rect>`

const renderAxis = (days: Days, summary: string): Html =>
  html`<p class="axis small dim">
    <span>${days[0]?.name}</span><span>${summary}</span><span>${t.today}</span>
  </p>`

const renderNames = (title: string, rows: Trends['images'], by: 'image' | 'q'): Content =>
  rows.length === 0
    ? null
    : html`<h3>${title}</h3>
        <ul class="rows">
          ${rows.map(
            ({ name, done, failed, medianSeconds }) =>
              html`<li>
                <a class="grow" href="${address('/ui/runs', { [by]: name })}"><bdi>${name}</bdi></a>
                <span class="small dim"
                  >${fill(t.rate, { done, all: done + failed })}${
                    medianSeconds === null ? null : html`, ${renderDuration(medianSeconds)}`
                  }</span
                >
              </li>`,
          )}
        </ul>`
