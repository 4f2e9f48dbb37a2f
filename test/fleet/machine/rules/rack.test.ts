import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { groupByRack } from '#fleet/machine/rules/label.ts'

const test = suite('racks and slots')
const at = (...labels: string[]) => ({ labels })
const drawn = (rows: readonly { readonly labels: readonly string[] }[]) =>
  groupByRack(rows).map(({ label, slots }) => [
    label,
    slots.map(({ number, row }) => (row === null ? `free ${number}` : number)),
  ])

test('racks are in natural order, those without one last, free slots are there', () => {
  const rows = [at('rack-10', 'slot-1'), at(), at('rack-2', 'slot-3'), at('slot-1', 'rack-2')]
  assert.equal(drawn(rows), [
    ['rack-2', [1, 'free 2', 3]],
    ['rack-10', [1]],
    [null, [null]],
  ])
})

test('a second machine in a slot, and slots that no rack has, stand behind', () => {
  const rows = [at('rack-1', 'slot-1'), at('rack-1', 'slot-1'), at('rack-1', 'slot-999')]
  assert.equal(drawn(rows), [['rack-1', [1, 1, null]]])
  assert.equal(drawn([at('Rack-x', 'slot-0')]), [['Rack-x', [null]]])
  assert.equal(drawn([]), [])
})

test.run()
