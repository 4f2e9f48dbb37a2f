/** What somebody with bounds may make of a machine: its labels by their rights, and by the scopes of everybody. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEditBounds } from '#server/routes/rules/edit-bounds.ts'

const test = suite('bounds of edits')

const machine = (...labels: readonly string[]) => ({ labels })
type Labelled = ReturnType<typeof machine>

const boundsOf = (
  reach: readonly string[] | null,
  administrates = false,
  scopes: readonly string[] = ['lab', 'rack'],
) =>
  createEditBounds<Labelled>(
    { reach, administrates },
    {
      labelsOf: ({ labels }) => labels,
      listScopeLabels: () => scopes,
      listSecretLabels: () => ['secret'],
    },
  )

test('a scope sees what has one of its labels and adds nothing; without one all is seen', () => {
  const scoped = boundsOf(['lab'])
  assert.equal(
    [machine('lab'), machine('x', 'lab'), machine('Lab'), machine()].map(scoped.canSee),
    [true, true, false, false],
  )
  assert.is(boundsOf([]).canSee(machine('lab')), false)
  assert.equal([scoped.adds, boundsOf([]).adds, boundsOf(null).adds], [false, false, true])
  assert.is(boundsOf(null).canSee(machine()), true)
})

test('a label that is a scope is neither given nor taken, by whoever does not administrate', () => {
  for (const bounds of [boundsOf(['lab']), boundsOf(null)]) {
    assert.match(bounds.refuse(machine('lab'), machine()) ?? '', /^The label lab is the scope/)
    assert.match(bounds.refuse(machine('lab'), machine('lab', 'rack')) ?? '', 'label rack')
    assert.match(bounds.refuse(machine('lab', 'rack'), machine('lab')) ?? '', 'label rack')
    assert.match(bounds.refuse(null, machine('rack')) ?? '', 'label rack')
    assert.is(bounds.refuse(null, machine('x')), null)
    assert.is(bounds.refuse(machine('lab', 'x'), machine('y', 'lab')), null)
    assert.is(bounds.refuse(machine('lab'), machine('lab')), null)
  }
  assert.is(boundsOf(null, true).refuse(machine('lab'), machine('rack')), null)
})

test('a label that has a password is neither given nor taken, by whoever does not administrate', () => {
  for (const bounds of [boundsOf(['lab']), boundsOf(null)]) {
    assert.match(bounds.refuse(machine('lab'), machine('lab', 'secret')) ?? '', 'has a password')
    assert.match(bounds.refuse(machine('lab', 'secret'), machine('lab')) ?? '', 'has a password')
    assert.match(bounds.refuse(null, machine('secret')) ?? '', 'has a password')
    assert.is(bounds.refuse(machine('lab', 'secret'), machine('secret', 'lab')), null)
  }
  assert.is(boundsOf(null, true).refuse(machine(), machine('secret')), null)
})

test('their own labels are fixed where nobody is known to have them', () => {
  assert.match(boundsOf(['lab'], false, []).refuse(machine('lab'), machine()) ?? '', 'label lab')
})

test('no edit that is allowed leads out of a scope, or into or out of that of anybody', () => {
  const anyLabels = fc.subarray(['lab', 'rack', 'lab 2', 'x', 'y'])
  fc.assert(
    fc.property(anyLabels, anyLabels, anyLabels, anyLabels, (reach, scopes, before, after) => {
      const bounds = boundsOf(reach, false, scopes)
      const [was, is] = [machine(...before), machine(...after)]
      const isAllowed = bounds.canSee(was) && bounds.refuse(was, is) === null
      if (!isAllowed) return
      assert.ok(bounds.canSee(is))
      for (const label of [...scopes, ...reach]) {
        assert.is(before.includes(label), after.includes(label), label)
      }
    }),
    { seed: 27_11_2026 },
  )
})

test.run()
