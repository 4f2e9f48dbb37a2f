import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideCatchUp } from '#fleet/cluster/rules/lease.ts'

const test = suite('catch-up')
const ENDS = { cluster: 'c', newest: { seq: 9, change: 'nine' }, oldest: 5, atSeq: 'seven' }
const at = (seq: number, change: string, cluster = 'c') => ({ cluster, seq, change })

const ROWS = [
  ['a file that follows no database', null, ENDS, 'everything'],
  ['one that another change came after', at(7, 'seven'), ENDS, 'changes'],
  ['one that has all', at(9, 'nine'), { ...ENDS, atSeq: 'nine' }, 'nothing'],
  ['one that is further behind than the log', at(2, 'two'), { ...ENDS, atSeq: null }, 'everything'],
  ['one whose restore did not end', at(-1, ''), { ...ENDS, atSeq: null }, 'everything'],
  ['one of another database', at(7, 'seven', 'd'), ENDS, 'other-database'],
  ['one that is ahead', at(12, 'twelve'), { ...ENDS, atSeq: null }, 'older-database'],
  ['one with another change of that number', at(7, 'x'), ENDS, 'older-database'],
  [
    'one whose change is missing within the log',
    at(7, 'x'),
    { ...ENDS, atSeq: null },
    'older-database',
  ],
] as const

for (const [what, membership, ends, decided] of ROWS) {
  test(`${what}: ${decided}`, () => assert.is(decideCatchUp(membership, ends), decided))
}

test.run()
