/** What the writes of a flash have done to the disk so far. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { nextStage } from '#engine/flash/rules/run-report.ts'

const test = suite('nextStage')

const ERASES = { isFirst: true, isBlank: true } as const
const FILLS = { isFirst: true, isBlank: false } as const
const ELSEWHERE = { isFirst: false, isBlank: false } as const

for (const [from, write, begun, confirmed] of [
  ['checking', ERASES, 'begun', 'writing'],
  ['checking', ELSEWHERE, 'begun', 'begun'],
  ['begun', ERASES, 'begun', 'writing'],
  ['writing', ELSEWHERE, 'writing', 'writing'],
  ['writing', FILLS, 'closing', 'closing'],
  ['closing', ERASES, 'closing', 'writing'],
  ['written', ERASES, 'written', 'writing'],
] as const) {
  test(`${from}: a write that ${write.isBlank ? 'erases' : 'fills'}, first: ${write.isFirst}`, () => {
    const stages = [false, true].map((isConfirmed) => nextStage(from, { ...write, isConfirmed }))
    assert.equal(stages, [begun, confirmed])
  })
}

test.run()
