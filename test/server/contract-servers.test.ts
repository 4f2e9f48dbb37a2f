/** What several servers promise together (docs/several-servers.md): changes by way of all of them while leaders die, hang and stop. */
import { readdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases, openWire } from '#test/support/cluster/postgres.ts'
import { editTo, proveDeparture, type Departure } from '#test/support/cluster/departures.ts'
import { proveLeaderless } from '#test/support/cluster/leaderless.ts'
import { askAs, startServer, until, type ClusterServer } from '#test/support/cluster/servers.ts'
import { SHORT_HOLD, SHORT_LEASE, timesOf } from '#test/support/cluster/times.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('contract, several servers')
const postgres = lendDatabases(test)

/** What makes a leader leave; within which time another one leads: real/takeover.test.ts. */
const DEPARTURES: Readonly<Record<string, Departure>> = {
  'a kill': {
    signal: 'SIGKILL',
    seconds: null,
    why: 'the session of the server that led has ended',
  },
  'a process that hangs': {
    signal: 'SIGSTOP',
    seconds: null,
    why: 'the server that led has not renewed it for 3.',
  },
  'a clean stop': { signal: 'SIGTERM', seconds: null, why: 'no server led' },
}

for (const [fault, departure] of Object.entries(DEPARTURES)) {
  const env: Readonly<Record<string, string>> =
    departure.signal === 'SIGSTOP' ? timesOf(SHORT_LEASE) : {}
  test(`1, 2, 5, 6: ${fault} of the leader loses nothing that was acknowledged by way of the others`, async () =>
    await proveDeparture(postgres, departure, env))
}

test('2: a leader that does not reach the database shows nothing that another one has changed', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using first = await startServer(wire.url, timesOf({ ...SHORT_LEASE, ...SHORT_HOLD }))
  await first.leads()
  await using second = await startServer(postgres.urlOf(name), timesOf(SHORT_LEASE))
  await second.standsBy()
  const machine = `/machines/${macOf(1)}`
  const askFirst = await askAs(first)
  assert.is((await askFirst(machine, editTo('old'))).status, 200)
  assert.is((await askFirst(machine)).status, 200)
  wire.hold()
  await second.leads()
  const askSecond = await askAs(second)
  assert.is((await askSecond(machine, editTo('new'))).status, 200)
  const reads = await Promise.all(
    [machine, '/machines', '/ui/machines'].map((path) => askFirst(path)),
  )
  assert.equal(
    reads.map(({ status }) => status),
    [503, 503, 503],
  )
  // What says how the server itself is remains to be seen.
  assert.match(await (await askFirst('/metrics')).text(), /^flasher_database_up 0$/m)
  wire.mend()
  assert.is((await first.process().ended).code, 1)
})

const backupsOf = ({ home }: ClusterServer) => readdir(home.at('state/backups')).catch(() => [])

test("10: only the leader's backup schedule runs, and the next leader goes on from its row", async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  const daily = { FLASHER_BACKUP_ENABLED: 'true', FLASHER_BACKUP_CADENCE: 'daily' }
  await using leader = await startServer(url, daily)
  await leader.leads()
  await using standby = await startServer(url, daily)
  await standby.standsBy()
  const rows = () =>
    postgres.query(name, "SELECT 1 FROM flasher.settings WHERE name = 'backup.last_run_at'")
  await until(async () => (await rows()).length === 1)
  const made = await backupsOf(leader)
  assert.ok(made.length > 0)
  assert.equal(await backupsOf(standby), [])
  leader.kill('SIGTERM')
  await standby.leads()
  await sleep(1500)
  // Today's was made.
  assert.equal(await backupsOf(standby), [])
})

test('4, 5: without a leader reports are held and then refused, and only a machine without an order leaves', async () => {
  await proveLeaderless(timesOf(SHORT_HOLD), 2500, 10_000)
})

test.run()
