import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSelector, type Description } from '#fleet/machine/rules/query.ts'

interface Row {
  readonly name: string
  readonly size: number | null
}
let described = 0
const createSelect = () =>
  createSelector({
    vocabulary: { fields: ['name'], times: ['seen'] },
    describe({ name, size }: Row, context: { readonly prefix: string }): Description {
      described += 1
      return {
        text: `${context.prefix}${name}`,
        fields: { name: [name] },
        times: { seen: 0 },
        order: { name, size },
      }
    },
  })
const ROWS: readonly Row[] = [
  { name: 'b', size: 2 },
  { name: 'a', size: null },
  { name: 'c', size: 1 },
]
const ON = { context: { prefix: 'x-' }, now: 0 }
const names = (rows: readonly Row[]) => rows.map(({ name }) => name).join('')

const test = suite('selection')

test('filters and sorts, what has no value last', () => {
  const select = createSelect()
  assert.is(names(select(ROWS, { text: '', sort: null }, ON)), 'bac')
  assert.is(names(select(ROWS, { text: '', sort: 'name' }, ON)), 'abc')
  assert.is(names(select(ROWS, { text: '-name:b', sort: '-name' }, ON)), 'ca')
  assert.is(names(select(ROWS, { text: '', sort: 'size' }, ON)), 'cba')
  assert.is(names(select(ROWS, { text: '', sort: '-size' }, ON)), 'bca')
  assert.is(names(select(ROWS, { text: '', sort: 'nothing' }, ON)), 'bac')
})

test('rows that are equal keep the order of the list, in both directions', () => {
  const select = createSelect()
  const rows = ['d', 'a', 'c', 'b'].map((name) => ({ name, size: name === 'c' ? 2 : 1 }))
  assert.is(names(select(rows, { text: '', sort: 'size' }, ON)), 'dabc')
  assert.is(names(select(rows, { text: '', sort: '-size' }, ON)), 'cdab')
})

test('all rows in the order of the list are the list itself, and none is described', () => {
  const select = createSelect()
  described = 0
  assert.is(select(ROWS, { text: '', sort: null }, ON), ROWS)
  assert.is(described, 0)
})

test('describes a row once, and again under another context', () => {
  const select = createSelect()
  described = 0
  select(ROWS, { text: 'a', sort: null }, ON)
  select(ROWS, { text: 'b', sort: 'name' }, ON)
  assert.is(described, 3)
  assert.is(
    names(select(ROWS, { text: 'y-', sort: null }, { ...ON, context: { prefix: 'y-' } })),
    'bac',
  )
  assert.is(described, 6)
})

test('gives the same answer object to those who ask the same', () => {
  const select = createSelect()
  const first = select(ROWS, { text: 'x', sort: 'name' }, ON)
  assert.is(select(ROWS, { text: 'x', sort: 'name' }, ON), first)
  assert.is.not(select([...ROWS], { text: 'x', sort: 'name' }, ON), first)
})

test('an age is looked at again as time goes by', () => {
  const select = createSelect()
  assert.is(select(ROWS, { text: 'seen:<1h', sort: null }, { ...ON, now: 1000 }).length, 3)
  assert.is(select(ROWS, { text: 'seen:<1h', sort: null }, { ...ON, now: 3_600_001 }).length, 0)
})

test.run()
