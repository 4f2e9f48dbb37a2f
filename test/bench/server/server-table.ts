/** The figures of the server's benchmark as Markdown tables, and their ratios as bars. */
import { renderBars } from '../chart.ts'
import type { BootRow } from './server-boot.ts'
import { costOf, typicalMs, type FleetMemory, type FleetRow } from './server-fleet.ts'
import { isHeld, middle, rateOf, type Bar } from './server-jobs.ts'
import type { Load } from './server-load.ts'
import type { RouteRow } from './server-routes.ts'
import type { StormRow } from './server-storm.ts'

const two = (value: number) => value.toFixed(2)
const whole = (value: number) => Math.round(value).toString()
const micros = (seconds: number) => whole(seconds * 1e6)
const perAnswer = (load: Load) => load.loadCpu / load.count
const GIB = 2 ** 30

/** The first column holds words, the others numbers. */
function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = head.map((_, at) => (at < 2 ? '---' : '---:'))
  return [head, line, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

export const renderRoutes = (rows: readonly RouteRow[]): string =>
  renderTable(
    [
      'Route',
      'Answered by',
      'Requests/s',
      'p99 ms',
      'To bare h3',
      'To bare node:http',
      'Server CPU µs',
      'Load CPU µs',
    ],
    rows.map(({ route, subject, loads, toH3, toHttp }) => [
      `\`${route}\``,
      subject,
      whole(middle(loads, rateOf)),
      two(middle(loads, ({ latencies }) => latencies.p99)),
      two(toH3),
      two(toHttp),
      micros(middle(loads, costOf)),
      micros(middle(loads, perAnswer)),
    ]),
  )

export const renderBoot = (rows: readonly BootRow[]): string =>
  renderTable(
    ['`/boot/`', 'Streams', 'MiB/s', 'To a pipe', 'Server CPU s/GiB', 'Load CPU s/GiB'],
    rows.map(({ subject, loads, toHttp }) => [
      subject,
      whole(middle(loads, ({ count }) => count)),
      whole(middle(loads, ({ bytes, seconds }) => bytes / seconds / 2 ** 20)),
      two(toHttp),
      two(middle(loads, ({ serverCpu, bytes }) => (serverCpu / bytes) * GIB)),
      two(middle(loads, ({ loadCpu, bytes }) => (loadCpu / bytes) * GIB)),
    ]),
  )

export const renderStorm = (rows: readonly StormRow[]): string =>
  renderTable(
    [
      '500 machines',
      'Answered by',
      'Answers',
      'p50 ms',
      'p99 ms',
      'Worst ms',
      'Seconds',
      'Server CPU s',
      'Load CPU s',
      'Peak MiB',
    ],
    rows.map(({ within, subject, loads, peakMib }) => [
      within === 0 ? 'at once' : `within ${within} s`,
      subject,
      whole(middle(loads, ({ count }) => count)),
      whole(middle(loads, ({ latencies }) => latencies.p50)),
      whole(middle(loads, ({ latencies }) => latencies.p99)),
      whole(middle(loads, ({ latencies }) => latencies.worst)),
      two(middle(loads, ({ seconds }) => seconds)),
      two(middle(loads, ({ serverCpu }) => serverCpu)),
      two(middle(loads, ({ loadCpu }) => loadCpu)),
      whole(peakMib),
    ]),
  )

export const renderFleet = (rows: readonly FleetRow[], memory: readonly FleetMemory[]): string =>
  renderTable(
    ['What', 'Machines', 'Typical ms', 'p99 ms', 'Server CPU µs', 'Peak MiB'],
    rows.map(({ what, machines, loads }) => [
      what,
      whole(machines),
      two(typicalMs(loads)),
      two(middle(loads, ({ latencies }) => latencies.p99)),
      micros(middle(loads, costOf)),
      whole(memory.find((one) => one.machines === machines)?.peakMib ?? 0),
    ]),
  )

/** What is missed is printed bold. */
export const renderPromises = (bars: readonly Bar[]): string =>
  renderTable(
    ['Promise', '', 'Measured', 'Bar'],
    bars.map((bar) => [
      bar.what,
      bar.is === 'least' ? 'at least' : 'at most',
      isHeld(bar) ? two(bar.value) : `**${two(bar.value)}**`,
      two(bar.limit),
    ]),
  )

export const CHART_WORDS = 'Answers or bytes a second, as a ratio to a bare node:http handler'

export const renderChart = (routes: readonly RouteRow[], boot: readonly BootRow[]): string =>
  renderBars(
    [
      ...routes.map(({ route, subject, toHttp }) => ({
        label: `${route}: ${subject}`,
        ratio: toHttp,
        isOurs: subject === 'flasher',
      })),
      ...boot.map(({ subject, toHttp }) => ({
        label: `/boot/, 8 streams: ${subject}`,
        ratio: toHttp,
        isOurs: subject === 'flasher',
      })),
    ],
    'a bare node:http handler',
    CHART_WORDS,
  )
