/** Steps are taken at once where nothing is awaited, and an error is the same now or later. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { after, recover } from '#kit/foundation/maybe-promise.ts'

const test = suite('maybe promise')

const broken = new Error('broken')
const name = (error: unknown) => (error === broken ? 'recovered' : 'another error')
const throwNow = () => {
  throw broken
}

test('a value is used at once, a promise when it is fulfilled', async () => {
  assert.is(
    after(1, (one) => one + 1),
    2,
  )
  const later = after(Promise.resolve(1), (one) => one + 1)
  assert.instance(later, Promise)
  assert.is(await later, 2)
  assert.is(await after(1, async (one) => one + 1), 2)
})

test('what fails now, and what fails later, is recovered from alike', async () => {
  assert.is(recover(throwNow, name), 'recovered')
  assert.is(await recover(() => Promise.reject(broken), name), 'recovered')
  assert.is(await recover(() => after(Promise.resolve(1), throwNow), name), 'recovered')
  assert.is(
    recover(() => 'fine', name),
    'fine',
  )
})

test.run()
