/** Volumes of one btrfs take turns, whichever disks they are on. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { takeTurn } from '#engine/disk/root-file-systems.ts'

const test = suite('turns of volumes with the same UUID')

test('one disk after the other; the same one, and others, at once', async () => {
  const taken: string[] = []
  const take = async (uuid: string, node: string) => {
    const end = await takeTurn(uuid, node)
    taken.push(`${uuid} ${node}`)
    return end
  }
  const first = await take('a', 'loop1')
  const again = await take('a', 'loop1')
  const waiting = [take('a', 'loop2'), take('a', 'loop3')]
  const other = await take('b', 'loop2')
  await nextTurn()
  assert.equal(taken, ['a loop1', 'a loop1', 'b loop2'])
  first()
  await nextTurn()
  assert.is(taken.length, 3)
  again()
  const second = await Promise.race(waiting)
  await nextTurn()
  assert.is(taken.length, 4)
  second()
  for (const end of await Promise.all(waiting)) end()
  assert.is(taken.length, 5)
  other()
  ;(await take('a', 'loop4'))()
})

test.run()
