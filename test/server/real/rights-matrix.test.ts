/** Every route that there is, asked by everybody: each role, with and without a scope, by session and by token. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { askEverything, openCurrentScene } from '#test/support/people/rights-matrix.ts'

const test = suite('matrix of rights, all of it')

test('everybody gets what is theirs, sees nothing outside of their scope, and changes nothing there', async () => {
  await using scene = await openCurrentScene()
  const { wrong, asked } = await askEverything(scene, null)
  assert.equal(wrong, [])
  assert.ok(asked > 2000, `${asked}`)
})

test.run()
