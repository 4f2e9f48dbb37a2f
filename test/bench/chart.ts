/** Ratios as horizontal bars, the 1.0 as a line, in colours for light and dark. */

export interface Bar {
  readonly label: string
  readonly ratio: number
  readonly isOurs: boolean
}

const ROW_HEIGHT = 22
const LEFT = 430
const SCALE = 240
const WIDTH = LEFT + SCALE * 2 + 60

const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** What is longer than twice the 1.0 is cut. `one` says what the 1.0 is, `about` what is shown. */
export function renderBars(bars: readonly Bar[], one: string, about: string): string {
  const height = bars.length * ROW_HEIGHT + 50
  const drawn = bars.map(({ label, ratio, isOurs }, index) => {
    const y = 36 + index * ROW_HEIGHT
    const length = Math.min(ratio, 2.05) * SCALE
    return [
      `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end">${escape(label)}</text>`,
      `<rect class="${isOurs ? 'ours' : 'theirs'}" x="${LEFT}" y="${y + 3}" width="${length.toFixed(0)}" height="${ROW_HEIGHT - 6}" rx="2"/>`,
      `<text x="${LEFT + length + 6}" y="${y + 15}">${ratio.toFixed(2)}</text>`,
    ].join('')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${escape(about)}">
<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.ours { fill: #1f6feb } .theirs { fill: #afb8c1 }
line { stroke: #57606a; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .theirs { fill: #484f58 } line { stroke: #8b949e } }
</style>
<text x="${LEFT + SCALE}" y="20" text-anchor="middle">1.0: ${escape(one)}</text>
<line x1="${LEFT + SCALE}" y1="26" x2="${LEFT + SCALE}" y2="${height - 8}"/>
${drawn.join('\n')}
</svg>
`
}
