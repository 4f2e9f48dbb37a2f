/** The benchmark's figures as a Markdown table and as an SVG chart. */
import type { Measured } from './measure.ts'
import type { DeviceKind } from './devices.ts'
import type { BenchFormat } from './inputs.ts'

export interface Row {
  readonly format: BenchFormat
  readonly device: DeviceKind
  readonly method: string
  readonly median: Measured
  /** Seconds and CPU seconds as ratios to the first method of the contest, median of the pairs. */
  readonly ratio: number
  readonly cpuRatio: number
  readonly bar: number | null
}

const two = (value: number) => value.toFixed(2)
const whole = (value: number) => Math.round(value).toString()

export function renderTable(rows: readonly Row[]): string {
  const head =
    '| Image | Disk | Method | Seconds | Ratio | Bar | CPU s | CPU ratio | Peak MiB | MiB written |'
  const line = '|---|---|---|---:|---:|---:|---:|---:|---:|---:|'
  const body = rows.map(({ format, device, method, median, ratio, cpuRatio, bar }) =>
    [
      '',
      format,
      device,
      `\`${method.replaceAll('|', '\\|')}\``,
      two(median.seconds),
      bar !== null && ratio > bar ? `**${two(ratio)}**` : two(ratio),
      bar === null ? '' : two(bar),
      two(median.cpuSeconds),
      two(cpuRatio),
      whole(median.peakMib),
      whole(median.writtenMib),
      '',
    ]
      .join(' | ')
      .trim(),
  )
  return [head, line, ...body].join('\n')
}

const ROW_HEIGHT = 22
const LEFT = 430
const SCALE = 240
const WIDTH = LEFT + SCALE * 2 + 60
const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Bars of the ratio, the first method's 1.0 as a line; what is longer than twice that is cut. */
export function renderChart(rows: readonly Row[]): string {
  const height = rows.length * ROW_HEIGHT + 50
  const bars = rows.map((row, index) => {
    const y = 36 + index * ROW_HEIGHT
    const length = Math.min(row.ratio, 2.05) * SCALE
    const kind = row.method.startsWith('flasher') ? 'ours' : 'theirs'
    return [
      `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end">${escape(`${row.format}, ${row.device}: ${row.method}`)}</text>`,
      `<rect class="${kind}" x="${LEFT}" y="${y + 3}" width="${length.toFixed(0)}" height="${ROW_HEIGHT - 6}" rx="2"/>`,
      `<text x="${LEFT + length + 6}" y="${y + 15}">${two(row.ratio)}</text>`,
    ].join('')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="Time to write an image, as a ratio to the usual command">
<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.ours { fill: #1f6feb } .theirs { fill: #afb8c1 }
line { stroke: #57606a; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .theirs { fill: #484f58 } line { stroke: #8b949e } }
</style>
<text x="${LEFT + SCALE}" y="20" text-anchor="middle">1.0: the usual command</text>
<line x1="${LEFT + SCALE}" y1="26" x2="${LEFT + SCALE}" y2="${height - 8}"/>
${bars.join('\n')}
</svg>
`
}
