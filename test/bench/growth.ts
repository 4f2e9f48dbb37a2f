/** `docs/growing.md`: how long an image takes to reach a fleet, worked out from the links that it passes; run as a program, it writes the table anew. */
import { readFileSync, writeFileSync } from 'node:fs'

const GROWTH_DOCUMENT = 'docs/growing.md'

/** The example: as it is stored and sent, in MiB. */
const IMAGE_MIB = 1024
const FLEETS = [10, 100, 500, 1000] as const
const LINKS = [1, 10] as const
const MACHINES_IN_A_RACK = 40
/** TCP has 1,448 bytes for its data, of the 1,538 that a frame of 1,500 takes on the wire. */
const PAYLOAD = 1448 / 1538

type Gigabits = (typeof LINKS)[number]

/** MiB a second of a link; a server and nginx fill 10 GbE (docs/performance.md). */
const rateOf = (gigabits: Gigabits) => (gigabits * 1e9 * PAYLOAD) / 8 / 2 ** 20

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

/** Seconds until `machines` on 1 GbE have the image: the slowest of what the bytes pass decides. */
function secondsFor({ server, rack }: Layout, machines: number): number {
  const copies = rack === null ? machines : Math.ceil(machines / MACHINES_IN_A_RACK)
  const fromServer = copies / rateOf(server)
  const inRack = rack === null ? 0 : Math.min(machines, MACHINES_IN_A_RACK) / rateOf(rack)
  return IMAGE_MIB * Math.max(fromServer, inRack, 1 / rateOf(1))
}

const span = (seconds: number) =>
  seconds < 100
    ? `${Math.round(seconds)} s`
    : `${(seconds / 60).toFixed(seconds < 600 ? 1 : 0)} min`
const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

function renderTable(): string {
  const fleets = FLEETS.map((each) => `${each.toLocaleString('en-US')} machines`)
  return [
    row(['1 GiB to each of', ...fleets]),
    row(['---', ...fleets.map(() => '---:')]),
    ...LAYOUTS.map((layout) =>
      row([layout.name, ...FLEETS.map((each) => span(secondsFor(layout, each)))]),
    ),
  ].join('\n')
}

if (import.meta.main) {
  const page = readFileSync(GROWTH_DOCUMENT, 'utf8')
  const between = /(<!-- bench:growth-images -->)[^]*?(<!-- \/bench:growth-images -->)/
  writeFileSync(GROWTH_DOCUMENT, page.replace(between, `$1\n\n${renderTable()}\n\n$2`))
}
