/** A room of machines with large hardware trees, of which each is stored. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { proveAway } from '#test/support/cluster/database-away.ts'
import { type Departure, proveDeparture } from '#test/support/cluster/departures.ts'
import { proveLeaderless } from '#test/support/cluster/leaderless.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { askEverything, openCurrentScene } from '#test/support/people/rights-matrix.ts'
import { postAtOnce } from '#test/support/server/inventory-storm.ts'

const test = suite('inventories of 300 machines')

test('300 machines post 1 MiB each at once: all are stored, and the server answers within a second', async () => {
  const seconds = await postAtOnce(300)
  assert.ok(seconds < 1, `/healthz took ${seconds} s`)
})

test('without a leader reports are held and then refused, and only a machine without an order leaves', async () =>
  await proveLeaderless({}, 10_000, 14_500))

test('a database that is away for 30 seconds: it is said once, and what was acknowledged is there', async () =>
  await proveAway({ startMs: 3000, laterMs: 18_000, env: {} }))

test('everybody gets what is theirs, sees nothing outside of their scope, and changes nothing there', async () => {
  await using scene = await openCurrentScene()
  const { wrong, asked } = await askEverything(scene, null)
  assert.equal(wrong, [])
  assert.ok(asked > 2000, `${asked}`)
})

const postgres = lendDatabases(test)

const DEPARTURES: Readonly<Record<string, Departure>> = {
  'a kill': { signal: 'SIGKILL', seconds: 2, why: 'the session of the server that led has ended' },
  'a process that hangs': {
    signal: 'SIGSTOP',
    seconds: 7,
    why: 'the server that led has not renewed it for 5.',
  },
  'a clean stop': { signal: 'SIGTERM', seconds: 2, why: 'no server led' },
}

for (const [fault, departure] of Object.entries(DEPARTURES)) {
  test(`${fault}: what it acknowledged is there, and another one leads in time`, async () =>
    await proveDeparture(postgres, departure, {}))
}

test.run()
