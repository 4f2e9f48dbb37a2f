/** What servers without a leader promise to whoever asks them (docs/several-servers.md). */
import * as assert from 'uvu/assert'
import { readMembership } from '#fleet/state/membership.ts'
import { openSqlite } from '#fleet/state/sqlite.ts'
import { startWaits } from '../processor-times.ts'
import { macOf } from '../server/state.ts'
import { startPostgres, type Postgres } from './postgres.ts'
import { askAs, startServer, until, type ClusterServer } from './servers.ts'

/** A server that stands by copies what the leader changes. */
async function hasEveryChange(standby: ClusterServer, postgres: Postgres, name: string) {
  const [lease] = await postgres.query(name, 'SELECT seq::int FROM flasher.lease')
  const file = openSqlite(standby.home.at('state/state.db'))
  try {
    return readMembership(file)?.seq === Number(lease?.['seq'])
  } finally {
    file.close()
  }
}

/** Reports and edits are held for `least` to `most` milliseconds; `env`: what the servers are started with. */
export async function proveLeaderless(
  env: Readonly<Record<string, string>>,
  least: number,
  most: number,
): Promise<void> {
  await using own = await startPostgres()
  const name = await own.create()
  await using leader = await startServer(own.urlOf(name), env)
  await leader.leads()
  await using standby = await startServer(own.urlOf(name), env)
  await standby.standsBy()
  const ask = await askAs(standby)
  const [plain, armed, unknown] = [macOf(1), macOf(2), macOf(3)]
  for (const [mac, mode] of [
    [plain, 'ipxe-exit'],
    [armed, 'flasher-inventory'],
  ]) {
    const put = { method: 'PUT', body: JSON.stringify({ boot_mode: mode }) }
    assert.is((await ask(`/machines/${mac}`, put)).status, 200)
  }
  await until(async () => await hasEveryChange(standby, own, name))
  await own.stop('SIGQUIT')
  leader.kill('SIGKILL')
  await until(async () => (await fetch(`${standby.url}/healthz?ready`)).status === 503)
  const waited = startWaits([process.pid, standby.process().child.pid])
  const begun = performance.now()
  const report = fetch(`${standby.url}/pxe/${armed}/done`, { method: 'POST' })
  const edit = ask(`/machines/${plain}`, { method: 'PUT', body: '{"labels":["x"]}' })
  // Six rounds, and the one in which it leaves; each is held as long as the others.
  const roundsOf = async (mac: string) => {
    const asked = Array.from({ length: 7 }, () => fetch(`${standby.url}/pxe/${mac}`))
    return await Promise.all(asked.map(async (each) => await (await each).text()))
  }
  const scripts = Promise.all([plain, armed, unknown].map(roundsOf))
  for (const each of [report, edit]) {
    const answer = await each
    assert.is(answer.status, 503)
    assert.is(answer.headers.get('retry-after'), '2')
  }
  const took = performance.now() - begun
  const worked = took - waited()
  assert.ok(took > least && worked < most, `${took} ms, ${worked} of its own`)
  const waits = (await scripts).map(
    (rounds) => rounds.filter((script) => script.includes('no server leads this fleet')).length,
  )
  assert.equal(waits, [6, 7, 6])
  assert.is((await fetch(`${standby.url}/healthz`)).status, 200)
  // Once the database is back, the one that stood by leads, and takes the report.
  await own.start()
  await standby.leads()
  const again = await fetch(`${standby.url}/pxe/${armed}/done`, { method: 'POST' })
  assert.is(again.status, 204)
}
