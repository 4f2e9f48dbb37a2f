/** Which parts of a boot are over their budgets, on machines of several speeds. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  BOOT_PARTS,
  BUDGETS,
  judgeParts,
  listExceeded,
  YARDSTICK_SECONDS,
  type MeasuredBoot,
} from './boot-budgets.ts'

const test = suite('budgets of a boot')

const HELD: MeasuredBoot = { ...BUDGETS, yardstick: YARDSTICK_SECONDS }

test('what takes exactly its budget is not over it', () => {
  assert.equal(listExceeded(judgeParts([HELD])), [])
})

test('each part that is over its budget is named, with how much', () => {
  for (const part of BOOT_PARTS) {
    const boot = { ...HELD, [part]: BUDGETS[part] * 1.5 }
    const [sentence = '', ...others] = listExceeded(judgeParts([boot]))
    assert.equal(others, [])
    const budget = BUDGETS[part].toFixed(2)
    assert.match(
      sentence,
      new RegExp(`^${part} took .* \\(50 %\\) more than its budget of ${budget} s$`),
    )
  }
})

test('a machine that is slower by itself may take longer, a faster one may not take less', () => {
  const slow = { ...HELD, yardstick: 2 * YARDSTICK_SECONDS, root: 2 * BUDGETS.root }
  assert.equal(listExceeded(judgeParts([slow])), [])
  assert.is(listExceeded(judgeParts([{ ...slow, root: 2.1 * BUDGETS.root }])).length, 1)
  assert.equal(listExceeded(judgeParts([{ ...HELD, yardstick: YARDSTICK_SECONDS / 4 }])), [])
})

test('of several boots the least of each part counts', () => {
  const late = { ...HELD, live: 10 * BUDGETS.live }
  assert.equal(listExceeded(judgeParts([late, HELD])), [])
  assert.is(listExceeded(judgeParts([late, late])).length, 1)
})

test.run()
