/** Every route has an expectation, and keeps it for the callers that matter most; `real/rights-matrix.test.ts` asks as everybody. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PAGE_GATE } from '#server/routes/rules/api-reach.ts'
import { createCurrentServer } from '#test/support/people/current-server.ts'
import { EXPECTED, listUnmatched } from '#test/support/people/expected-routes.ts'
import { askEverything, openCurrentScene } from '#test/support/people/rights-matrix.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'

const test = suite('matrix of rights')

test('each route of both lines has its expectation, and each expectation its route', async () => {
  await using server = await createCurrentServer()
  await using earlier = await createEarlierServer()
  assert.equal(listUnmatched(EXPECTED.server, [...server.routes, ...earlier.routes]), [])
  const rows = Object.entries(PAGE_GATE).flatMap(([path, row]) =>
    Object.keys(row).flatMap((name) => (name === 'reach' ? [] : [`${name} ${path}`])),
  )
  const stale = rows.filter((row) => !EXPECTED.server.has(row))
  assert.equal(stale, [], 'rows of the gate without a route')
})

test('who is nobody, has no role, who looks and who operates, in a scope too, by session and token, keep to what they may', async () => {
  await using scene = await openCurrentScene()
  const people = ['none-all', 'look-all', 'operate-all', 'operate-lab']
  const names = ['nobody', 'token read', ...people.flatMap((name) => [name, `${name}'s`])]
  const { wrong, asked } = await askEverything(scene, names)
  assert.equal(wrong, [])
  assert.ok(asked > 800, `${asked}`)
})

test.run()
