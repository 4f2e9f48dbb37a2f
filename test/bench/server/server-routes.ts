/** Short answers: requests a second and their p99, beside a bare h3 route and a bare handler. */
import type { CannedAnswer } from './server-bare.ts'
import { createFolder } from './server-fixture.ts'
import { ratioOf, rateOf, runLoad, type Bar } from './server-jobs.ts'
import type { Load } from './server-load.ts'
import { startBare, startFlasher, type Subject } from './server-subjects.ts'
import { macOf } from './server-wire.ts'

export interface RouteRow {
  readonly route: string
  readonly subject: string
  readonly loads: readonly Load[]
  /** Of requests a second. */
  readonly toH3: number
  readonly toHttp: number
}

interface Contest {
  readonly title: string
  readonly path: string
  readonly machines: { readonly first: number; readonly step: number; readonly count: number }
  /** Which server is asked. */
  readonly of: 'usual' | 'open' | 'closed'
  readonly bar?: number
}

const MACHINES = 100
const CONNECTIONS = 32
const FLASHED = { first: 0, step: 2, count: MACHINES / 2 }
const ARMED = { first: 1, step: 2, count: MACHINES / 2 }
const NEW = { first: 1_000_000, step: 1, count: 2 ** 31 }
const LEAST = 0.5

const CONTESTS: readonly Contest[] = [
  { title: '/healthz', path: '/healthz', machines: FLASHED, of: 'usual' },
  { title: '/pxe/{mac}, known', path: '/pxe/{mac}', machines: FLASHED, of: 'usual', bar: LEAST },
  { title: '/pxe/{mac}, new', path: '/pxe/{mac}', machines: NEW, of: 'open', bar: LEAST },
  { title: '/pxe/{mac}, refused', path: '/pxe/{mac}', machines: NEW, of: 'closed', bar: LEAST },
  { title: '/pxe/{mac}/plan', path: '/pxe/{mac}/plan', machines: ARMED, of: 'usual' },
  { title: '/images', path: '/images', machines: FLASHED, of: 'usual' },
]

/** New machines are taken up at no bounded pace, or not at all. */
const OPEN = { FLASHER_PXE_DISCOVERY_PER_MINUTE: '1000000', FLASHER_PXE_DISCOVERY_ROWS: '1000000' }
const CLOSED = { FLASHER_PXE_DISCOVERY_PER_MINUTE: '0' }

export async function measureRoutes(runs: number, seconds: number) {
  await using folder = await createFolder(MACHINES)
  await using openFolder = await createFolder(0)
  await using closedFolder = await createFolder(0)
  await using usual = await startFlasher(folder)
  await using open = await startFlasher(openFolder, OPEN)
  await using closed = await startFlasher(closedFolder, CLOSED)
  const { bootDir } = folder
  const answers = await readAnswers(usual)
  await using h3 = await startBare({ kind: 'h3', answers, bootDir })
  await using http = await startBare({ kind: 'http', answers, bootDir })
  const ours = { usual, open, closed }
  const rows: RouteRow[] = []
  for (const contest of CONTESTS) {
    const subjects = [ours[contest.of], h3, http] as const
    const loads: [Load[], Load[], Load[]] = [[], [], []]
    for (let run = 0; run < runs; run += 1) {
      for (const [at, subject] of subjects.entries()) {
        const load = await ask(contest, subject, run, seconds)
        loads[at]?.push(load)
        console.error(`${contest.title} ${subject.name}: ${rateOf(load).toFixed(0)}/s`)
      }
    }
    const [, besideH3, besideHttp] = loads
    rows.push(
      ...subjects.map(({ name }, at) => ({
        route: contest.title,
        subject: name,
        loads: loads[at] ?? [],
        toH3: ratioOf(loads[at] ?? [], besideH3, rateOf),
        toHttp: ratioOf(loads[at] ?? [], besideHttp, rateOf),
      })),
    )
  }
  return { rows, bars: listBars(rows) }
}

const ask = ({ path, machines }: Contest, subject: Subject, run: number, seconds: number) =>
  runLoad(
    {
      kind: 'loop',
      connections: CONNECTIONS,
      seconds,
      path,
      headers: {},
      // Nobody is new twice.
      machines: { ...machines, first: machines.first + (machines === NEW ? run * 1_000_000 : 0) },
    },
    subject,
  )

/** What the server says is what the yardsticks say, to the byte. */
export async function readAnswers({ port }: Subject): Promise<readonly CannedAnswer[]> {
  const read = async (route: string, path: string): Promise<CannedAnswer> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return { route, type: response.headers.get('content-type') ?? '', text: await response.text() }
  }
  return [
    await read('/healthz', '/healthz'),
    await read('/pxe-bootstrap.ipxe', '/pxe-bootstrap.ipxe'),
    await read('/pxe/:mac', `/pxe/${macOf(0)}`),
    await read('/pxe/:mac/plan', `/pxe/${macOf(1)}/plan`),
    await read('/images', '/images'),
  ]
}

const listBars = (rows: readonly RouteRow[]): readonly Bar[] =>
  CONTESTS.flatMap(({ title, bar }) => {
    const row = rows.find(({ route, subject }) => route === title && subject === 'flasher')
    if (bar === undefined || row === undefined) return []
    return [
      { what: `${title}, ratio to bare h3`, value: row.toH3, limit: bar, is: 'least' as const },
    ]
  })
