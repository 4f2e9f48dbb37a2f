import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inTurnOf } from '#kit/host/queue.ts'

const test = suite('turns of a file')

test('work on one file is done in turn, whatever becomes of it, and other files do not wait', async () => {
  const order: string[] = []
  const gate = Promise.withResolvers<null>()
  const first = inTurnOf('/state/a', async () => {
    await gate.promise
    order.push('first')
    throw new Error('it cannot be written')
  })
  const second = inTurnOf('/state/a', async () => void order.push('second'))
  await inTurnOf('/state/b', async () => void order.push('other'))
  gate.resolve(null)
  assert.is(await first.catch((thrown: unknown) => String(thrown)), 'Error: it cannot be written')
  await second
  assert.equal(order, ['other', 'first', 'second'])
})

test.run()
