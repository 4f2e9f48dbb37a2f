/** The benchmark's figures as a Markdown table and as an SVG chart. */
import { renderBars } from './chart.ts'
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

/** One row for each image and disk: the usual command's seconds, and our ratios to it with their bars. */
export function renderSummary(rows: readonly Row[]): string {
  const head = '| Image | Disk | Usual command | Seconds | `--no-verify` | Verified | Peak MiB |'
  const ratioOf = (row: Row | undefined) =>
    row === undefined
      ? ''
      : row.bar === null
        ? two(row.ratio)
        : `${row.ratio > row.bar ? `**${two(row.ratio)}**` : two(row.ratio)} (${two(row.bar)})`
  const body = Object.values(
    Object.groupBy(rows, ({ format, device }) => `${format} ${device}`),
  ).flatMap((contest = []) => {
    const [usual] = contest
    const found = (method: string) => contest.find((row) => row.method === method)
    const verified = found('flasher (read back)')
    if (usual === undefined || verified === undefined) return []
    const { format, device, method, median } = usual
    const name = `\`${method.replaceAll('|', '\\|')}\``
    const ratios = `${ratioOf(found('flasher --no-verify'))} | ${ratioOf(verified)}`
    return [
      `| ${format} | ${device} | ${name} | ${two(median.seconds)} | ${ratios} | ${whole(verified.median.peakMib)} |`,
    ]
  })
  return [head, '|---|---|---|---:|---:|---:|---:|', ...body].join('\n')
}

/** Bars of the ratio to the first method. */
export const renderChart = (rows: readonly Row[]): string =>
  renderBars(
    rows.map(({ format, device, method, ratio }) => ({
      label: `${format}, ${device}: ${method}`,
      ratio,
      isOurs: method.startsWith('flasher'),
    })),
    'the usual command',
    'Time to write an image, as a ratio to the usual command',
  )
