/** The lease with the product's own times: a leader that hangs is replaced after five seconds. */
import { suite } from 'uvu'
import { proveDeparture } from '../../support/cluster/departures.ts'
import { startPostgres } from '../../support/cluster/postgres.ts'

const test = suite('a leader that hangs, in real time')

test('what it acknowledged is there, and another one leads within seven seconds', async () => {
  await using postgres = await startPostgres()
  const why = 'the server that led has not renewed it for 5.'
  await proveDeparture(postgres, { signal: 'SIGSTOP', seconds: 7, why }, {})
})

test.run()
