/** `docs/growing.md`: what each step of growth brings, worked out from figures that docs/performance.md and the tests hold; run as a program, it writes the tables anew. */
import { readFileSync, writeFileSync } from 'node:fs'

export const GROWTH_DOCUMENT = 'docs/growing.md'

/** The example: as it is stored and sent, in MiB. */
const IMAGE_MIB = 1024
const FLEETS = [10, 100, 500, 1000] as const
const LINKS = [1, 10] as const
const MACHINES_IN_A_RACK = 40
/** Seconds within which a fleet is to have its image. */
const SPAN = 600
const MOST = 10_000
/** TCP has 1,448 bytes for its data, of the 1,538 that a frame of 1,500 takes on the wire. */
const PAYLOAD = 1448 / 1538

type Gigabits = (typeof LINKS)[number]

/** MiB a second of a link. */
const rateOf = (gigabits: Gigabits) => (gigabits * 1e9 * PAYLOAD) / 8 / 2 ** 20

function find(text: string, pattern: RegExp): number {
  const found = Number(pattern.exec(text)?.[1])
  if (!Number.isFinite(found)) throw new Error(`no figure matches ${pattern}`)
  return found
}

/** Figures that others hold, found in the pages that hold them. */
function readFigures() {
  const performance = readFileSync('docs/performance.md', 'utf8')
  const images = readFileSync('docs/images.md', 'utf8')
  const [, storm = ''] = performance.split(/^\| 500 machines /m)
  const [, fleet = ''] = performance.split(/^\| What +\| Machines /m)
  return {
    /** MiB a second, eight streams; CPU seconds a GiB. */
    ours: find(performance, /^\| flasher +\| 8 +\| +(\d+) /m),
    oursCpu: find(performance, /^\| flasher +\| 8 +\| +\d+ \| +[\d.]+ \| +([\d.]+) /m),
    nginx: find(performance, /^\| nginx, sendfile on +\| 8 +\| +(\d+) /m),
    nginxCpu: find(performance, /^\| nginx, sendfile on +\| 8 +\| +\d+ \| +[\d.]+ \| +([\d.]+) /m),
    /** Milliseconds. */
    stormAtOnce: find(storm, /^\| at once +\| flasher +\| +\d+ \| +\d+ \| +(\d+) /m),
    stormSpread: find(storm, /^\| within 10 s +\| flasher +\| +\d+ \| +\d+ \| +(\d+) /m),
    /** CPU seconds for 500 machines. */
    stormCpu: find(
      storm,
      /^\| within 10 s +\| flasher +(?:\| +[\d.]+ ){4}\| +[\d.]+ \| +([\d.]+) /m,
    ),
    /** Microseconds of a contact in a fleet of 10,000. */
    contact: find(fleet, /^\| contact +\| 10000 +\| +[\d.]+ \| +[\d.]+ \| +(\d+) /m),
    /** MB. */
    root: find(images, /^\| `…squashfs` +\| +([\d.]+) \|/m),
    /** MiB written to the slower disk by a whole flash and by one of which 5 % changed. */
    whole: find(
      performance,
      /^\| zst +\| throttled +\| `flasher \(read back\)`(?: +\|[^|]+){6} +\| +(\d+) \|/m,
    ),
    changed: find(performance, /^\| delta +\| throttled +\| 5 % changed(?:[^|]+\|){7} +(\d+) \|/m),
  }
}

type Figures = ReturnType<typeof readFigures>

interface Layout {
  readonly name: string
  readonly server: Gigabits
  /** The link of the cache in each rack; null: there is none. */
  readonly rack: Gigabits | null
}

const LAYOUTS: readonly Layout[] = [
  ...LINKS.map((server) => ({ name: `server on ${server} GbE`, server, rack: null })),
  ...LINKS.map((server) => ({
    name: `server on ${server} GbE, nginx on 10 GbE in each rack`,
    server,
    rack: 10 as const,
  })),
]

/** Seconds until `machines` have `mib` each: the slowest of what the bytes pass decides. */
function secondsFor(figures: Figures, layout: Layout, machines: number, mib: number): number {
  const racks = Math.ceil(machines / MACHINES_IN_A_RACK)
  const copies = layout.rack === null ? machines : racks
  const fromServer = (copies * mib) / Math.min(rateOf(layout.server), figures.ours)
  const inRack =
    layout.rack === null
      ? 0
      : (Math.min(machines, MACHINES_IN_A_RACK) * mib) /
        Math.min(rateOf(layout.rack), figures.nginx)
  return Math.max(fromServer, inRack, mib / rateOf(1))
}

/** How many machines have their image within `SPAN`; no fleet above `MOST` was measured. */
function machinesWithin(figures: Figures, layout: Layout): string {
  let machines = 0
  while (machines < MOST && secondsFor(figures, layout, machines + 1, IMAGE_MIB) <= SPAN)
    machines += 1
  return machines < MOST ? count(machines) : `${count(MOST)} or more`
}

const span = (seconds: number) =>
  seconds < 100
    ? `${Math.round(seconds)} s`
    : `${(seconds / 60).toFixed(seconds < 600 ? 1 : 0)} min`
const count = (value: number) => value.toLocaleString('en-US')
const figure = (value: number, digits = 0) => value.toFixed(digits)
const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [row(head), row(head.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(row)].join('\n')

const renderImages = (figures: Figures) =>
  table(
    ['1 GiB to each of', ...FLEETS.map((each) => `${count(each)} machines`), 'Machines in 10 min'],
    LAYOUTS.map((layout) => [
      layout.name,
      ...FLEETS.map((each) => span(secondsFor(figures, layout, each, IMAGE_MIB))),
      machinesWithin(figures, layout),
    ]),
  )

const renderRoots = (figures: Figures) =>
  table(
    [`${figures.root} MB to each of`, ...FLEETS.map((each) => `${count(each)} machines`)],
    LAYOUTS.filter(({ rack }) => rack === null).map((layout) => [
      layout.name,
      ...FLEETS.map((each) =>
        span(secondsFor(figures, layout, each, (figures.root * 1e6) / 2 ** 20)),
      ),
    ]),
  )

/** What stands between each pair of marks in the page, by its name. Throws where a figure is missing. */
export function renderGrowth(): ReadonlyMap<string, string> {
  const figures = readFigures()
  const [slow, fast] = [rateOf(1), rateOf(10)]
  const example = (IMAGE_MIB * 100) / slow
  return new Map([
    [
      'growth-links',
      table(
        ['What the bytes pass', 'MiB/s', 'CPU s/GiB', 'From'],
        [
          ['1 GbE', figure(slow), '', '10⁹ bit/s ÷ 8 × 1,448 ÷ 1,538 ÷ 2²⁰'],
          ['10 GbE', figure(fast), '', 'ten times that'],
          [
            '`flasher-web`, `flasher-cache`',
            figure(figures.ours),
            figure(figures.oursCpu, 2),
            'measured, `/boot/`',
          ],
          [
            'nginx with sendfile',
            figure(figures.nginx),
            figure(figures.nginxCpu, 2),
            'measured, the same file',
          ],
        ],
      ),
    ],
    ['growth-images', renderImages(figures)],
    [
      'growth-example',
      `For example 100 machines, server on 1 GbE: 100 × ${count(IMAGE_MIB)} MiB ÷ ${figure(slow, 1)} MiB/s = ${figure(example)} s = ${span(example)}. With an nginx in each rack of ${MACHINES_IN_A_RACK}, ${Math.ceil(100 / MACHINES_IN_A_RACK)} copies leave the server (${Math.ceil(100 / MACHINES_IN_A_RACK)} × ${count(IMAGE_MIB)} ÷ ${figure(slow, 1)} = ${figure((Math.ceil(100 / MACHINES_IN_A_RACK) * IMAGE_MIB) / slow)} s), and ${MACHINES_IN_A_RACK} leave the nginx (${MACHINES_IN_A_RACK} × ${count(IMAGE_MIB)} ÷ ${figure(fast, 1)} = ${figure((MACHINES_IN_A_RACK * IMAGE_MIB) / fast)} s); nginx passes pieces on while others arrive, so the longer of the two counts.`,
    ],
    ['growth-roots', renderRoots(figures)],
    [
      'growth-decisions',
      table(
        ['What a server decides', 'Measured', 'For 1,000 machines'],
        [
          [
            'a contact in a fleet of 10,000',
            `${figures.contact} µs of CPU`,
            `${figure((figures.contact * 1000) / 1e6, 3)} s of CPU a round`,
          ],
          [
            '500 machines, their whole boot within 10 s',
            `p99 ${figures.stormSpread} ms, ${figures.stormCpu} s of CPU`,
            `${figure(figures.stormCpu * 2, 1)} s of CPU`,
          ],
          ['500 machines at one moment', `p99 ${figure(figures.stormAtOnce / 1000, 1)} s`, ''],
        ],
      ),
    ],
    [
      'growth-delta',
      `A flash with \`--delta\` of an image of which 5 % changed wrote ${figures.changed} MiB instead of ${figures.whole} (${figure((figures.changed / figures.whole) * 100)} %), and fetches those frames only: the tables' times shrink in the same proportion.`,
    ],
  ])
}

/** The page with these parts in it. */
const fillIn = (page: string, parts: ReadonlyMap<string, string>) =>
  page.replaceAll(/(<!-- bench:([\w-]+) -->)[^]*?(<!-- \/bench:\2 -->)/g, (...found) => {
    const [whole, start, name, end] = found.map(String)
    const text = parts.get(name ?? '')
    return text === undefined ? (whole ?? '') : [start, text, end].join('\n\n')
  })

if (import.meta.main) {
  writeFileSync(GROWTH_DOCUMENT, fillIn(readFileSync(GROWTH_DOCUMENT, 'utf8'), renderGrowth()))
}
