import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planArchivePruning, renderArchiveName } from '#fleet/state/rules/change-count.ts'

const test = suite('state archive')
const AT = '2026-11-21T06:55:53.193Z'

test('names release and time, and a number where that is taken', () => {
  assert.is(renderArchiveName('state.db', '0.66.1', AT), 'state.db.0.66.1.20261121T065553Z.bak')
  assert.is(
    renderArchiveName('state.db', '0.66.1', AT, 2),
    'state.db.0.66.1.20261121T065553Z.2.bak',
  )
})

test('no release leaves the folder, or makes a name too long', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (from) => {
      const name = renderArchiveName('state.db', from, AT)
      assert.match(name, /^state\.db\.[\w.+-]+\.20261121T065553Z\.bak$/)
      assert.ok(name.length < 128)
    }),
  )
})

test('the oldest go, whatever the release was called', () => {
  const names = [
    renderArchiveName('state.db', '9.0.0', '2026-01-01T00:00:00.000Z'),
    renderArchiveName('state.db', '1.0.0', '2026-03-01T00:00:00.000Z'),
    renderArchiveName('state.db', '1.0.0', '2026-02-01T00:00:00.000Z', 1),
    renderArchiveName('state.db', '1.0.0', '2026-02-01T00:00:00.000Z'),
    'state.db',
    'state.db.bak',
    'other.db.1.0.0.20200101T000000Z.bak',
  ]
  const kept = { made: null, now: '2026-06-01T00:00:00.000Z' }
  assert.equal(planArchivePruning(names, 'state.db', { ...kept, keep: 2 }), [names[3], names[0]])
  assert.equal(planArchivePruning(names, 'state.db', { ...kept, keep: 9 }), [])
})

const nameOf = (year: number) => renderArchiveName('state.db', '1', `${year}-01-01T00:00:00.000Z`)

test('those of a clock that ran ahead go first, and one of this moment stays whatever it says', () => {
  const names = [2056, 2025, 2026].map(nameOf)
  const now = '2026-06-01T00:00:00.000Z'
  const prune = (keep: number, made: string | null) =>
    planArchivePruning(names, 'state.db', { keep, made, now })
  assert.equal(prune(2, null), [nameOf(2056)])
  assert.equal(prune(1, nameOf(2025)), [nameOf(2026), nameOf(2056)])
  assert.equal(prune(1, nameOf(2056)), [nameOf(2026), nameOf(2025)])
})

test.run()
