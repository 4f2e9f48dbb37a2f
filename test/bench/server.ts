/** pnpm bench:server: flasher-web beside a bare h3 route, a bare handler and nginx, in one run. */
import { execFile } from 'node:child_process'
import { parseArgs, promisify } from 'node:util'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { isInNetwork, openMedia, runInNetwork } from './cluster/cluster-media.ts'
import { measureCluster } from './cluster/cluster-storm.ts'
import { publish, publishText } from './publish.ts'
import { measureBoot } from './server/server-boot.ts'
import { createFolder, type Folder, renderInventory, SMALL_FILES } from './server/server-fixture.ts'
import { measureFleet } from './server/server-fleet.ts'
import { type Bar, isHeld, middle, rateOf, runLoad } from './server/server-jobs.ts'
import type { Load } from './server/server-load.ts'
import { measureRoutes } from './server/server-routes.ts'
import { measureStorm } from './server/server-storm.ts'
import { startFlasher, type Subject } from './server/server-subjects.ts'
import * as table from './server/server-table.ts'

const BOXES = 500
const WITHIN = 10
const MAX_MS = 50
const CONNECTIONS = 32
const SECONDS = 5
const OPEN = {
  FLASHER_PXE_DISCOVERY_PER_MINUTE: '1000000',
  FLASHER_PXE_DISCOVERY_ROWS: '1000000',
}

/** Prints a line for each run, beside one without a database, and returns the goal that counts. */
async function measureDatabase(runs: number) {
  await using postgres = await startPostgres()
  const storms: Load[] = []
  for (let run = 0; run < runs; run += 1) {
    await using folder = await createFolder(0)
    const name = `fleet_${run}`
    await postgres.query('postgres', `CREATE DATABASE ${name}`)
    const database = { FLASHER_DATABASE_URL: postgres.urlOf(name) }
    await importState(folder, database)
    await using flasher = await startFlasher(folder, { ...OPEN, ...database })
    storms.push(await measureOne(flasher, 'PostgreSQL'))
    await using alone = await createFolder(0)
    await using plain = await startFlasher(alone, OPEN)
    await measureOne(plain, 'its own file')
  }
  const value = middle(storms, ({ latencies }) => latencies.p99)
  const what = `${BOXES} new machines within ${WITHIN} s on PostgreSQL, p99 in ms`
  const bar: Bar = { what, value, limit: MAX_MS, is: 'most' }
  return { bars: [bar] }
}

/** The folder has a state already, which holds the token of the bench. */
async function importState(folder: Folder, database: Readonly<Record<string, string>>) {
  await promisify(execFile)(
    process.execPath,
    ['runtime/bin/flasher-web.mjs', 'database', 'import'],
    { env: { ...process.env, ...database, FLASHER_PATHS_STATE_DIR: folder.path } },
  )
}

async function measureOne(subject: Subject, state: string): Promise<Load> {
  const storm = await runLoad(
    {
      kind: 'boxes',
      boxes: BOXES,
      within: WITHIN,
      files: SMALL_FILES,
      inventory: renderInventory(),
    },
    subject,
  )
  const machines = { first: 1e6, step: 1, count: 2 ** 31 }
  const busy = await runLoad(
    {
      kind: 'loop',
      connections: CONNECTIONS,
      seconds: SECONDS,
      path: '/pxe/{mac}',
      headers: {},
      machines,
    },
    subject,
  )
  const { p50, p99, worst } = storm.latencies
  const times = [p50, p99, worst].map((time) => time.toFixed(0)).join(', ')
  const rate = rateOf(busy).toFixed(0)
  console.error(
    `new machines, state in ${state}: p50, p99, worst ${times} ms within ${WITHIN} s; ${rate}/s at ${CONNECTIONS} connections, p99 ${busy.latencies.p99.toFixed(0)} ms`,
  )
  return storm
}

const PARTS = ['routes', 'boot', 'storm', 'fleet'] as const

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    parts: { type: 'string', default: PARTS.join(',') },
    against: { type: 'string' },
    faults: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    machines: { type: 'string', default: '500' },
    servers: { type: 'string', default: '3' },
    qemu: { type: 'string', default: '0' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(`pnpm bench:server [--runs 5] [--seconds 3] [--parts ${PARTS.join(',')}]
  [--against CHECKOUT] [--write]
  --parts cluster [--faults 300] [--seed 1] [--machines 500] [--servers 3]
  [--qemu 0] [--write]

--parts database (root, PostgreSQL 15) boots new machines with the state on PostgreSQL; it is in no
chart.

--parts cluster (root, PostgreSQL 15, 512 MiB of memory for small disks) is a storm at servers that
share a database: made-up machines are flashed by the client that real ones have, people change
others, and faults of a list that is made from the seed happen one after the other. It fails where an
acknowledged change is lost, an order is not kept to, or a flash begins again; 300 faults take some
50 minutes. --qemu 2 adds machines that QEMU boots into the live system, as pnpm test:vm has it, and
whose disks must be whole at the end of each flash. --write puts its table into docs/several-servers.md.

--against measures the routes of another checkout's server as well: before and after a change.

--write puts the promises and the chart into docs/performance.md, where all parts were measured. All on
loopback addresses. nginx (package nginx-light) is compared where it is installed.`)
  process.exit(0)
}
const [runs, seconds] = [Number(values.runs), Number(values.seconds)]
const qemu = Number(values.qemu)
if (qemu > 0 && !isInNetwork()) process.exit(await runInNetwork(await openMedia()))
const wanted = (part: (typeof PARTS)[number] | 'database' | 'cluster') =>
  values.parts.split(',').includes(part)

const routes = wanted('routes') ? await measureRoutes(runs, seconds, values.against ?? null) : null
const boot = wanted('boot') ? await measureBoot(runs) : null
const storm = wanted('storm') ? await measureStorm(runs) : null
const fleet = wanted('fleet') ? await measureFleet(runs, seconds) : null

const database = wanted('database') ? await measureDatabase(runs) : null
const cluster = wanted('cluster')
  ? await measureCluster({
      faults: Number(values.faults),
      seed: Number(values.seed),
      machines: Number(values.machines),
      servers: Number(values.servers),
      qemu,
    })
  : null

const bars: readonly Bar[] = [routes, boot, storm, fleet, database, cluster].flatMap(
  (part) => part?.bars ?? [],
)
const promises = table.renderPromises(bars)
const tables = [
  promises,
  ...(routes === null ? [] : [table.renderRoutes(routes.rows)]),
  ...(boot === null ? [] : [table.renderBoot(boot.rows)]),
  ...(storm === null ? [] : [table.renderStorm(storm.rows)]),
  ...(fleet === null ? [] : [table.renderFleet(fleet.rows, fleet.memory)]),
].join('\n\n')
console.log(tables)
for (const { what } of bars.filter((bar) => !isHeld(bar))) console.error(`missed: ${what}`)
if (cluster !== null) {
  console.log(cluster.text)
  if (!cluster.bars.every(isHeld)) process.exitCode = 1
  if (values.write) publishText('cluster', cluster.found, 'docs/several-servers.md')
}
if (values.write && routes !== null && boot !== null && storm !== null && fleet !== null) {
  const words = `Median of ${runs} runs, interleaved; each route for ${seconds} s on 32 connections.`
  const chart = table.renderChart(routes.rows, boot.rows)
  publish('server', words, chart, table.CHART_WORDS, promises)
}
