/** A leader that leaves, with the product's own times: within how many seconds another one leads. */
import { suite } from 'uvu'
import { proveDeparture, type Departure } from '#test/support/cluster/departures.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'

const test = suite('a leader that leaves, in real time')
const postgres = lendDatabases(test)

const DEPARTURES: Readonly<Record<string, Departure>> = {
  'a kill': { signal: 'SIGKILL', seconds: 2, why: 'the session of the server that led has ended' },
  'a process that hangs': {
    signal: 'SIGSTOP',
    seconds: 7,
    why: 'the server that led has not renewed it for 5.',
  },
  'a clean stop': { signal: 'SIGTERM', seconds: 2, why: 'nobody led' },
}

for (const [fault, departure] of Object.entries(DEPARTURES)) {
  test(`${fault}: what it acknowledged is there, and another one leads in time`, async () =>
    await proveDeparture(postgres, departure, {}))
}

test.run()
