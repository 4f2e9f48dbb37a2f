/** A room of machines with large hardware trees, of which each is stored. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { postAtOnce } from '#test/support/server/inventory-storm.ts'

const test = suite('inventories of 300 machines')

test('300 machines post 1 MiB each at once: all are stored, and the server answers within a second', async () => {
  const seconds = await postAtOnce(300)
  assert.ok(seconds < 1, `/healthz took ${seconds} s`)
})

test.run()
