import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addSaved,
  parseSaved,
  renderSaved,
  type SavedSearch,
} from '#server/current/pages/machines/list-tools.ts'
import { isUsual, parseColumns, renderColumns } from '#server/current/pages/view/machine-row.ts'

const test = suite('what a browser remembers of the machines list')

const search = (name: string, q = 'state:failed'): SavedSearch => ({ name, q, sort: '' })

function add(searches: readonly SavedSearch[], given: SavedSearch): readonly SavedSearch[] {
  const added = addSaved(searches, given)
  if (!added.ok) throw new Error(added.refusal)
  return added.value
}

function refusalOf(searches: readonly SavedSearch[], given: SavedSearch): string | null {
  const added = addSaved(searches, given)
  return added.ok ? null : added.refusal
}

test('a search comes back from its cookie as it was saved', () => {
  const saved = add(add([], search('失敗 "1"', 'image:debian* "a b"')), search('b'))
  assert.match(renderSaved(saved), /^[\w-]+$/)
  assert.equal(parseSaved(renderSaved(saved)), saved)
})

test('the same name replaces; no name, no search, too long and too many are refused', () => {
  assert.equal(add([search('a')], search(' a ', 'mode:tui')), [search('a', 'mode:tui')])
  assert.is(refusalOf([], search(' ')), 'no-name')
  assert.is(refusalOf([], search('a', ' ')), 'no-search')
  assert.is(refusalOf([], search('a'.repeat(41))), 'too-long')
  assert.is(refusalOf([], search('a', 'q'.repeat(301))), 'too-long')
  const full = Array.from({ length: 12 }, (_, at) => search(`n${at}`))
  assert.is(refusalOf(full, search('one more')), 'too-many')
  const long = Array.from({ length: 3 }, (_, at) => search(`n${at}`, '試'.repeat(280)))
  assert.is(refusalOf(long, search('one more', '試'.repeat(280))), 'too-many')
})

test('any cookie is read without harm, and what it holds stays within the limits', () => {
  const parts = fc.array(fc.tuple(fc.string(), fc.string(), fc.string()))
  const cookies = fc.oneof(
    fc.string(),
    parts.map((each) => Buffer.from(JSON.stringify(each)).toString('base64url')),
  )
  fc.assert(
    fc.property(cookies, (cookie) => {
      const saved = parseSaved(cookie)
      assert.ok(saved.length <= 12)
      for (const { name, q } of saved) assert.ok(name !== '' && q !== '' && q.length <= 300)
    }),
  )
  assert.equal(parseSaved(null), [])
  assert.equal(parseSaved('A'.repeat(5000)), [])
})

test('columns are those that exist, in the order of the table, with the name among them', () => {
  assert.is(renderColumns(parseColumns('seen.state.nothing.state')), 'state.name.seen')
  assert.is(renderColumns(parseColumns('x')), 'name')
  assert.is(renderColumns(parseColumns(null)), 'state.name.next.image.disk.seen')
  assert.is(renderColumns(parseColumns('')), 'state.name.next.image.disk.seen')
  assert.ok(isUsual(parseColumns('seen.disk.image.next.state')))
  assert.not(isUsual(parseColumns('state')))
  assert.is(renderColumns(parseColumns('__proto__.constructor')), 'name')
})

test.run()
