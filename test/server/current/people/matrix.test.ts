/** Every route has an expectation, and keeps it for the callers that matter most; `real/rights-matrix.test.ts` asks as everybody. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { reachOf, type Route } from '#kit/web/answers/route.ts'
import { createCurrentServer } from '#test/support/people/current-server.ts'
import { EXPECTED, listUnmatched, nameOf } from '#test/support/people/expected-routes.ts'
import { askEverything, openCurrentScene } from '#test/support/people/rights-matrix.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'

const test = suite('matrix of rights')

test('each route of both lines has its expectation, and each expectation its route', async () => {
  await using server = await createCurrentServer()
  await using earlier = await createEarlierServer()
  const routes = [...server.routes, ...earlier.routes]
  assert.equal(listUnmatched(EXPECTED.server, routes), [])
  const differing = routes.filter((route) => {
    const expected = EXPECTED.server.get(nameOf(route))
    return needOf(route) !== expected?.need || (isGated(route) && reachOf(route) !== expected.reach)
  })
  assert.equal(differing.map(nameOf), [])
})

const isGated = ({ access }: Route) => access !== 'open'

const needOf = ({ access }: Route) => {
  const asked = typeof access === 'function' ? access() : access
  return typeof asked === 'object' ? asked.page : asked
}

test('who is nobody, has no role, who looks and who operates, in a scope too, by session and token, keep to what they may', async () => {
  await using scene = await openCurrentScene()
  const people = ['none-all', 'look-all', 'operate-all', 'operate-lab']
  const names = ['nobody', 'token read', ...people.flatMap((name) => [name, `${name}'s`])]
  const { wrong, asked } = await askEverything(scene, names)
  assert.equal(wrong, [])
  assert.ok(asked > 800, `${asked}`)
})

test.run()
