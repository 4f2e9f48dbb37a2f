import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDeadline, settle, untilAborted, watch } from '#kit/host/watch.ts'

const test = suite('watch')
const never = new Promise<never>(() => {})
const messageOf = (work: Promise<unknown>) => work.then(String, (thrown: unknown) => String(thrown))

test('work gives its result or its failure', async () => {
  const { signal } = new AbortController()
  assert.is(await untilAborted(signal, Promise.resolve(7)), 7)
  assert.match(await messageOf(untilAborted(signal, Promise.reject(new Error('no')))), 'no')
})
test('an abort ends the wait, whatever the work does', async () => {
  const cancelling = new AbortController()
  const { promise, reject } = Promise.withResolvers<never>()
  const waiting = messageOf(untilAborted(cancelling.signal, promise))
  cancelling.abort(new Error('enough'))
  assert.match(await waiting, 'enough')
  // Nobody hears of what fails afterwards, and nobody has to.
  reject(new Error('late'))
  await new Promise(setImmediate)
  assert.match(await messageOf(untilAborted(cancelling.signal, never)), 'enough')
  assert.match(await messageOf(untilAborted(cancelling.signal, Promise.reject(1))), 'enough')
})
test('settling says whether work ended, in whatever way', async () => {
  assert.is(await settle(Promise.resolve(), 10_000), true)
  assert.is(await settle(Promise.reject(new Error('no')), 10_000), true)
  assert.is(await settle(never, 1), false)
})
test('patience is one for all', async () => {
  const patience = createDeadline(200)
  const begun = performance.now()
  for (let n = 0; n < 4; n += 1) assert.is(await patience(never), false)
  const lasted = performance.now() - begun
  assert.ok(lasted >= 190, String(lasted))
  // Even then what is at hand is taken.
  assert.is(await patience(Promise.resolve()), true)
})
test('watching looks again and again, then gives the result', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  let looks = 0
  const watching = watch(promise, 1, () => {
    looks += 1
    if (looks === 3) resolve('done')
    return looks
  })
  const seen: number[] = []
  let step = await watching.next()
  for (; step.done !== true; step = await watching.next()) seen.push(step.value)
  assert.is(step.value, 'done')
  assert.equal(seen.slice(0, 3), [1, 2, 3])
})
test('a failure is thrown to the one who watches', async () => {
  const failed = Promise.reject(new Error('no'))
  assert.match(await messageOf(watch(failed, 1, () => 0).next()), 'no')
})
test.run()
