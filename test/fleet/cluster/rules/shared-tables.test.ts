import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ALL_KEYS, createKeyList } from '#fleet/cluster/rules/shared-tables.ts'

const test = suite('the keys of changes')

test('each key is there once, whatever changed it', () => {
  const list = createKeyList(3)
  assert.ok(list.add('{"machines":[["a"]],"runs":[[1]]}'))
  assert.ok(list.add('{"machines":[["a"],["b"]]}'))
  assert.ok(list.add('{"runs":[[1]]}'))
  assert.equal(Object.fromEntries(list.all()), { machines: [['a'], ['b']], runs: [[1]] })
})

test('more rows than that, a change of every row and one that cannot be read ask for everything', () => {
  const list = createKeyList(2)
  assert.ok(list.add('{"machines":[["a"],["b"]]}'))
  assert.not(list.add('{"events":[["c"]]}'))
  assert.not(createKeyList().add(ALL_KEYS))
  assert.not(createKeyList().add('{"machines":'))
})

test.run()
