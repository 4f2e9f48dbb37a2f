/** pnpm bench:server: flasher-web beside a bare h3 route, a bare handler and nginx, in one run. */
import { parseArgs } from 'node:util'
import { isInNetwork, openMedia, runInNetwork } from './cluster/cluster-media.ts'
import { measureCluster } from './cluster/cluster-storm.ts'
import { publish, publishText } from './publish.ts'
import { measureBoot } from './server/server-boot.ts'
import { measureDatabase } from './server/server-database.ts'
import { measureFleet } from './server/server-fleet.ts'
import { isHeld, type Bar } from './server/server-jobs.ts'
import { measureRoutes } from './server/server-routes.ts'
import { measureStorm } from './server/server-storm.ts'
import * as table from './server/server-table.ts'

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
