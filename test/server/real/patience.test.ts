/** The patience of servers with the product's own times: who asks is held for twelve seconds, and told then. */
import { suite } from 'uvu'
import { proveAway } from '#test/support/cluster/database-away.ts'
import { proveLeaderless } from '#test/support/cluster/leaderless.ts'

const test = suite('patience, in real time')

test('without a leader reports are held and then refused, and only a machine without an order leaves', async () =>
  await proveLeaderless({}, 10_000, 14_500))

test('a database that is away for 30 seconds: it is said once, and what was acknowledged is there', async () =>
  await proveAway({ startMs: 3000, laterMs: 18_000, env: {} }))

test.run()
