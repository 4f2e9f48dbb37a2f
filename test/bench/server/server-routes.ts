/** Short answers: requests a second and their p99, beside a bare h3 route and a bare handler. */
import type { CannedAnswer } from './server-bare.ts'
import { join, resolve } from 'node:path'
import { createFolder } from './server-fixture.ts'
import { costOf, ratioOf, rateOf, runLoad, type Bar } from './server-jobs.ts'
import type { Load } from './server-load.ts'
import { startBare, startFlasher, type Subject } from './server-subjects.ts'
import { macOf } from './server-wire.ts'

export interface RouteRow {
  readonly route: string
  readonly subject: string
  readonly loads: readonly Load[]
  /** The ratios to a bare h3 and a bare node:http, in requests a second. */
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
/** A new machine is on disk before it is answered. */
const DURABLE_LEAST = 0.25

const CONTESTS: readonly Contest[] = [
  { title: '/healthz', path: '/healthz', machines: FLASHED, of: 'usual', bar: 0.6 },
  { title: '/pxe/{mac}, known', path: '/pxe/{mac}', machines: FLASHED, of: 'usual', bar: LEAST },
  { title: '/pxe/{mac}, new', path: '/pxe/{mac}', machines: NEW, of: 'open', bar: DURABLE_LEAST },
  { title: '/pxe/{mac}, refused', path: '/pxe/{mac}', machines: NEW, of: 'closed', bar: LEAST },
  {
    title: '/pxe/{mac}/plan',
    path: '/pxe/{mac}/plan',
    machines: ARMED,
    of: 'usual',
    bar: LEAST,
  },
  { title: '/images', path: '/images', machines: FLASHED, of: 'usual' },
]

/** New machines are taken up at no bounded pace, or not at all. */
const OPEN = { FLASHER_PXE_DISCOVERY_PER_MINUTE: '1000000', FLASHER_PXE_DISCOVERY_ROWS: '1000000' }
const CLOSED = { FLASHER_PXE_DISCOVERY_PER_MINUTE: '0' }

/** `against`: another checkout, whose server is measured beside ours; null: none. */
export async function measureRoutes(runs: number, seconds: number, against: string | null = null) {
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
  await using others = await startOthers(against)
  const rows: RouteRow[] = []
  const toBefore: { readonly route: string; readonly value: number }[] = []
  for (const contest of CONTESTS) {
    const other = others.servers?.[contest.of]
    const subjects = [ours[contest.of], h3, http, ...(other === undefined ? [] : [other])]
    const loads = await compete(contest, subjects, runs, seconds)
    const [own = [], besideH3 = [], besideHttp = [], before = []] = loads
    if (other !== undefined)
      toBefore.push({ route: contest.title, value: ratioOf(own, before, costOf) })
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
  const notSlower = toBefore.map(({ route, value }) => ({
    what: `${route}, processor time of an answer, ratio to ${against}`,
    value,
    limit: 1.05,
    is: 'most' as const,
  }))
  return { rows, bars: [...listBars(rows), ...notSlower] }
}

/** The same three servers of another checkout, each on a folder of its own. */
async function startOthers(checkout: string | null) {
  await using undo = new AsyncDisposableStack()
  const createOwn = checkout === null ? createFolder : await loadFixture(checkout)
  const start = async (machines: number, settings: Readonly<Record<string, string>> = {}) => {
    const folder = undo.use(await createOwn(machines))
    return undo.use(await startFlasher(folder, settings, checkout))
  }
  const servers =
    checkout === null
      ? null
      : { usual: await start(MACHINES), open: await start(0, OPEN), closed: await start(0, CLOSED) }
  const all = undo.move()
  return { servers, [Symbol.asyncDispose]: () => all[Symbol.asyncDispose]() }
}

/**
 * How that checkout makes its folder: a state of ours might be newer than its server, which would set
 * it aside, begin without machines, and be quick because it has nothing to say.
 */
async function loadFixture(checkout: string): Promise<typeof createFolder> {
  const path = join(resolve(checkout), 'test/bench/server/server-fixture.ts')
  const fixture: { readonly createFolder: typeof createFolder } = await import(path)
  return fixture.createFolder
}

/** The loads of each subject, in turn, as often as there are runs. */
async function compete(
  contest: Contest,
  subjects: readonly Subject[],
  runs: number,
  seconds: number,
): Promise<readonly (readonly Load[])[]> {
  const loads: Load[][] = subjects.map(() => [])
  for (let run = 0; run < runs; run += 1) {
    for (const [at, subject] of subjects.entries()) {
      const load = await ask(contest, subject, run, seconds)
      loads[at]?.push(load)
      console.error(`${contest.title} ${subject.name}: ${rateOf(load).toFixed(0)}/s`)
    }
  }
  return loads
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
