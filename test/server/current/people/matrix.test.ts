/** Every route has an expectation, and keeps it for the callers that matter most; `real/rights-matrix.test.ts` asks as everybody. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCurrentServer } from '../../../support/people/current-server.ts'
import { findExpected, listExpected } from '../../../support/people/expected-routes.ts'
import { askEverything, nameOf } from '../../../support/people/rights-matrix.ts'
import { createEarlierServer } from '../../../support/server/earlier-server.ts'

const test = suite('matrix of rights')

test('each route of both lines has its expectation, and each expectation its route', async () => {
  await using server = await createCurrentServer()
  await using earlier = await createEarlierServer()
  const routes = [...server.routes, ...earlier.routes]
  const missing = routes.filter((route) => findExpected(route) === null)
  assert.equal(missing.map(nameOf), [], 'add them to expected-routes.ts')
  const known = new Set(routes.map(nameOf))
  assert.equal(
    listExpected().filter((name) => !known.has(name)),
    [],
  )
})

test('who operates in a scope, by session and token, and who may only read keep to what they may', async () => {
  const { wrong, asked } = await askEverything(['operate-lab', "operate-lab's", 'token read'])
  assert.equal(wrong, [])
  assert.ok(asked > 300, `${asked}`)
})

test.run()
