/** Every route has an expectation, and keeps it for the callers that matter most; `real/rights-matrix.test.ts` asks as everybody. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCurrentServer } from '../../../support/people/current-server.ts'
import { EXPECTED, listUnmatched } from '../../../support/people/expected-routes.ts'
import { askEverything, openCurrentScene } from '../../../support/people/rights-matrix.ts'
import { createEarlierServer } from '../../../support/server/earlier-server.ts'

const test = suite('matrix of rights')

test('each route of both lines has its expectation, and each expectation its route', async () => {
  await using server = await createCurrentServer()
  await using earlier = await createEarlierServer()
  assert.equal(listUnmatched(EXPECTED.server, [...server.routes, ...earlier.routes]), [])
})

test('who operates in a scope, by session and token, and who may only read keep to what they may', async () => {
  await using scene = await openCurrentScene()
  const names = ['operate-lab', "operate-lab's", 'token read']
  const { wrong, asked } = await askEverything(scene, names)
  assert.equal(wrong, [])
  assert.ok(asked > 300, `${asked}`)
})

test.run()
