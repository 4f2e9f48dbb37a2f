/**
 * Faults of the database and between servers that only whole servers show; each ends in a sentence and loses nothing.
 * The others: refused databases in test/fleet/cluster/refusals.test.ts, full, read-only, older and slow ones beside it,
 * a state without its database and a restore in contract.test.ts, faults of registries in test/cache/registry-faults.test.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { label, proveAway } from '#test/support/cluster/database-away.ts'
import { SHORT_HOLD, SHORT_LEASE, timesOf } from '#test/support/cluster/times.ts'
import { askAs, startServer } from '#test/support/cluster/servers.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('faults of the database')
const TIMES = timesOf({ ...SHORT_LEASE, ...SHORT_HOLD })
const KEY = { ...TIMES, FLASHER_DATABASE_KEY: 'a key of at least thirty-two characters' }
/** Sets the clock of a process by the hour: 1 is ahead, 2 is behind. */
const CLOCK = new URL('../bench/cluster/cluster-clock.ts', import.meta.url).href
const clockOf = (step: number) => ({
  NODE_OPTIONS: `--import=${CLOCK}`,
  BENCH_CLOCK_STEP: String(step),
})

test('away at the start and later: it is said once each time, and what was acknowledged is there', async () =>
  await proveAway({ startMs: 1500, laterMs: 0, env: timesOf(SHORT_HOLD) }))

test('clocks an hour apart and set back, and a leader that the other one does not reach: nobody takes over for that', async () => {
  await using postgres = await startPostgres()
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  const nobody = `http://127.0.0.1:${await findPort()}`
  await using ahead = await startServer(url, {
    ...KEY,
    ...clockOf(1),
    FLASHER_DATABASE_OWN_URL: nobody,
  })
  await ahead.leads()
  await using behind = await startServer(url, { ...KEY, ...clockOf(2) })
  await behind.standsBy()
  const ask = await askAs(ahead)
  const mac = macOf(1)
  assert.is((await ask(`/machines/${mac}`, label('kept'))).status, 200)
  const refused = await fetch(`${behind.url}/machines/${mac}`)
  assert.is(refused.status, 503)
  assert.match(await refused.text(), /no server leads this fleet/)
  await behind.process().saw(`cannot be reached at ${nobody}`)
  await behind.process().saw('Its database.own_url must be right')
  assert.match(await (await fetch(`${behind.url}/pxe/${mac}`)).text(), /no server leads this fleet/)
  // Both clocks are set, by an hour or two.
  ahead.kill('SIGUSR2')
  behind.kill('SIGUSR2')
  await sleep(1.5 * SHORT_LEASE.leaseMs)
  const [lease] = await postgres.query(name, 'SELECT epoch FROM flasher.lease')
  assert.is(Number(lease?.['epoch']), 1, 'nobody else led')
  assert.is((await ask(`/machines/${mac}`, label('later'))).status, 200)

  ahead.kill('SIGKILL')
  await behind.leads()
  const next = await askAs(behind)
  assert.equal((await (await next(`/machines/${mac}`)).json()).labels, ['later'])
  assert.is((await next(`/machines/${macOf(2)}`, label('new'))).status, 200)
  assert.ok((await login(behind.url, 'a password of the tests')).cookie)
})

test.run()
