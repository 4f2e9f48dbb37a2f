/** Where the time of a run went: bars below each other on one scale of seconds. */
import type { Waterfall, WaterfallPart } from '#fleet/run/rules/waterfall.ts'
import { fill } from '#kit/texts/text.ts'
import { html, type Html } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.runs.run.waterfall

/** In the drawing's units. */
const [WIDTH, ROW, LABEL, FIGURE] = [720, 22, 190, 80]

const FILLS: Readonly<Partial<Record<WaterfallPart, string>>> = {
  write: '#2f6fde',
  verify: '#5b8fe8',
  sync: '#5b8fe8',
  unattributed: '#b3402a',
}
const OTHERS = '#6d7f99'

/** `scale`: seconds for the full width, shared when two are compared. */
export function renderWaterfall(
  { bars, seconds, unattributed_seconds }: Waterfall,
  scale = seconds,
): Html {
  const room = WIDTH - LABEL - FIGURE
  const [first] = bars
  const begin = first === undefined ? 0 : Date.parse(first.from)
  const unit = room / Math.max(scale, 0.001)
  const place = (given: number) => (LABEL + given * unit).toFixed(1)
  return html`<svg
      xmlns="http://www.w3.org/2000/svg"
      viewBox="0 0 ${WIDTH} ${bars.length * ROW}"
      width="100%"
      role="img"
      aria-label="${fill(t.summary, { seconds: seconds.toFixed(1) })}"
      font-family="sans-serif"
      font-size="13"
    >
      ${bars.map(({ part, from, seconds: length }, at) => {
        const start = (Date.parse(from) - begin) / 1000
        const words = { part: t.parts[part], seconds: length.toFixed(1) }
        return html`<g>
          <title>${fill(t.bar, words)}</title>
          <text x="0" y="${at * ROW + 15}" fill="currentColor">${t.parts[part]}</text>
          <rect
            x="${place(start)}"
            y="${at * ROW + 4}"
            width="${Math.max(1, length * unit).toFixed(1)}"
            height="${ROW - 8}"
            fill="${FILLS[part] ?? OTHERS}"
          ></rect>
          <text x="${WIDTH}" y="${at * ROW + 15}" text-anchor="end" fill="currentColor"
            >${fill(t.figure, { seconds: length.toFixed(1) })}</text
          >
        </g>`
      })}
    </svg>
    <p class="small dim">
      ${fill(t.total, { seconds: seconds.toFixed(1), lost: unattributed_seconds.toFixed(1) })}
    </p>`
}
