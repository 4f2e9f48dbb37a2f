/** One call of an expensive function for all who ask meanwhile, never one that began before. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createTogether } from '#engine/disk/disks.ts'

const test = suite('createTogether')

/** Counts its calls; each ends when `finish` says so. */
function createCounted() {
  const started: string[] = []
  const ends: PromiseWithResolvers<number>[] = []
  const act = (argument: string) => {
    started.push(argument)
    const end = Promise.withResolvers<number>()
    ends.push(end)
    return end.promise
  }
  return { act, started, ends, call: createTogether(act) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('whoever asks while one is under way shares the next', async () => {
  const { call, started, ends } = createCounted()
  const first = call('a')
  await turn()
  const others = [call('a'), call('a'), call('a')]
  await turn()
  assert.equal(started, ['a'])
  ends[0]?.resolve(1)
  assert.is(await first, 1)
  await turn()
  assert.equal(started, ['a', 'a'])
  ends[1]?.resolve(2)
  assert.equal(await Promise.all(others), [2, 2, 2])
})

test('only the same is shared', async () => {
  const { call, started, ends } = createCounted()
  const calls = [call('a'), call('b')]
  await turn()
  ends[0]?.resolve(1)
  await turn()
  ends[1]?.resolve(2)
  assert.equal(await Promise.all(calls), [1, 2])
  assert.equal(started, ['a', 'b'])
})

test('a failure is for those that shared it; the next call is a new one', async () => {
  const { call, ends } = createCounted()
  const shared = [call('a'), call('a')]
  await turn()
  const later = call('a')
  ends[0]?.reject(new Error('no answer'))
  for (const { status } of await Promise.allSettled(shared)) assert.is(status, 'rejected')
  await turn()
  ends[1]?.resolve(2)
  assert.is(await later, 2)
})

test.run()
