/** The names under which a cache that follows another one has fetched something: they are bounded, and those of nothing go first. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openKeptNames } from '../../runtime/cache/follow/kept-names.ts'
import { createRecords } from '../../runtime/kit/host/records.ts'
import { makeFolder } from '../support/server/image-cache.ts'

const test = suite('kept names')
const record = (digit: string) => ({ url: 'http://a/', sha256: digit.repeat(64), name: 'a.img' })
const [HERE, GONE] = [record('a'), record('b')]

test('names of what never came make room; those of what is here stay', async () => {
  await using folder = await makeFolder()
  const records = createRecords(folder.path)
  const isHere = (sha256: string) => sha256 === HERE.sha256
  const names = await openKeptNames(records, isHere, 3)
  await names.save('kept', HERE)
  for (const key of ['made-up-1', 'made-up-2', 'made-up-3']) await names.save(key, GONE)
  await names.save('new', HERE)
  assert.equal([names.find('kept'), names.find('new')], [HERE, HERE])
  await names.save('newer', HERE)
  await names.save('one-too-many', HERE)
  assert.is(names.find('one-too-many'), null)
  const again = await openKeptNames(records, isHere, 3)
  assert.equal([again.find('kept'), again.find('newer')], [HERE, HERE])
  assert.is(again.find('made-up-3'), null)
})

test.run()
