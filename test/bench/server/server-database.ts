/** New machines with the state on PostgreSQL: 500 within 10 s, and as many as there can be at 32 connections. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { createFolder, renderInventory, SMALL_FILES, type Folder } from './server-fixture.ts'
import { middle, rateOf, runLoad, type Bar } from './server-jobs.ts'
import type { Load } from './server-load.ts'
import { startFlasher, type Subject } from './server-subjects.ts'

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
export async function measureDatabase(runs: number) {
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
