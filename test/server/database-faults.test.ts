/**
 * Faults of the database and between servers that only whole servers show; each ends in a sentence and loses nothing.
 * The others: refused databases in test/fleet/cluster/refusals.test.ts, full, read-only, older and slow ones beside it,
 * a state without its database and a restore in contract.test.ts, faults of registries in test/cache/registry-faults.test.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startPostgres } from '../support/cluster/postgres.ts'
import { askAs, startServer, until, type ClusterServer } from '../support/cluster/servers.ts'
import { login } from '../support/server/flasher-web.ts'
import { findPort } from '../support/http/ports.ts'
import { macOf } from '../support/server/state.ts'

const test = suite('faults of the database')
const KEY = { FLASHER_DATABASE_KEY: 'a key of at least thirty-two characters' }
/** Sets the clock of a process by the hour: 1 is ahead, 2 is behind. */
const CLOCK = new URL('../bench/cluster/cluster-clock.ts', import.meta.url).href
const clockOf = (step: number) => ({
  NODE_OPTIONS: `--import=${CLOCK}`,
  BENCH_CLOCK_STEP: String(step),
})

const label = (text: string) => ({ method: 'PUT', body: JSON.stringify({ labels: [text] }) })
const countOf = async ({ process }: ClusterServer, saying: RegExp) =>
  [...(await process().ended).stderr.matchAll(saying)].length
const AWAY = /the socket of the database is not there.*Nothing is lost/g

test('away at the start, and for 30 seconds later: it is said once each time, and what was acknowledged is there', async () => {
  await using postgres = await startPostgres()
  const url = postgres.urlOf(await postgres.create())
  await postgres.stop()
  await using server = await startServer(url)
  await server.process().saw('the socket of the database is not there')
  assert.is((await fetch(`${server.url}/healthz`)).status, 200)
  assert.is((await fetch(`${server.url}/healthz?ready`)).status, 503)
  assert.is((await fetch(`${server.url}/pxe-bootstrap.ipxe`)).status, 200)
  // It is asked again and again meanwhile.
  await sleep(3000)
  await postgres.start()
  await server.leads()
  const ask = await askAs(server)
  assert.is((await ask(`/machines/${macOf(1)}`, label('before'))).status, 200)

  await postgres.stop('SIGQUIT')
  const [edit, script] = await Promise.all([
    ask(`/machines/${macOf(2)}`, label('meanwhile')),
    fetch(`${server.url}/pxe/${macOf(1)}`),
  ])
  assert.is(edit.status, 503)
  assert.is(edit.headers.get('retry-after'), '2')
  assert.match(await script.text(), /no server leads this fleet/)
  assert.is((await fetch(`${server.url}/healthz`)).status, 200)
  await sleep(18_000)
  await postgres.start()
  // A session is judged by a database that answers.
  await until(
    async () => (await ask(`/machines/${macOf(3)}`, label('after'))).status === 200,
    60_000,
  )
  assert.equal((await (await ask(`/machines/${macOf(1)}`)).json()).labels, ['before'])
  server.kill('SIGTERM')
  assert.is((await server.process().ended).code, 0)
  assert.is(await countOf(server, AWAY), 2)
  assert.is(await countOf(server, /the database answers again/g), 1)
})

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
  await sleep(7000)
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
