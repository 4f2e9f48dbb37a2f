import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findLastJump } from '#fleet/state/rules/change-count.ts'
import {
  canFlood,
  FLOOD_NOTES,
  FLOOD_WINDOW_MS,
  type FloodWindow,
  isOver,
  nextWindow,
} from '#fleet/state/rules/event-table.ts'

const test = suite('flood')

test('a few are noted, the rest of the stretch counted, the next stretch begins anew', () => {
  let window: FloodWindow | null = null
  const noted: boolean[] = []
  for (let n = 0; n < 10; n += 1) {
    const next = nextWindow(window, 1000 + n)
    noted.push(next.note)
    window = next.window
  }
  assert.is(noted.filter(Boolean).length, FLOOD_NOTES)
  assert.equal(window, { openedAt: 1000, noted: FLOOD_NOTES, counted: 10 - FLOOD_NOTES })
  assert.equal(nextWindow(window, 1000 + FLOOD_WINDOW_MS), {
    note: true,
    window: { openedAt: 1000 + FLOOD_WINDOW_MS, noted: 1, counted: 0 },
  })
})

test('a clock that was set back ends a stretch', () => {
  assert.ok(isOver({ openedAt: 5000, noted: 3, counted: 9 }, 4999))
})

test('only what anybody can cause is counted', () => {
  assert.ok(canFlood('machine.flashed', 'pxe-client'))
  assert.ok(canFlood('auth.login.failed', 'operator'))
  assert.not(canFlood('machine.upserted', 'operator'))
  assert.not(canFlood('machine.upserted', 'token:ci'))
})

const DAY = 86_400_000

/** Rows at these days, numbered from 1; `now`: the day on which it is asked. */
const find = (days: readonly number[], now: number, kept = 90) =>
  findLastJump(
    days.map((day, index) => ({ number: index + 1, at: day * DAY })),
    kept,
    now * DAY,
  )

test('none in times that go on, also after weeks of silence', () => {
  assert.is(find([], 1), 0)
  assert.is(find([0, 1, 50, 120], 200), 0)
})

test('a clock that runs ahead is one, whether or not a row was written since', () => {
  assert.is(find([0, 1, 2], 11_000), 3)
  assert.is(find([0, 1, 2, 11_000], 11_001), 3)
  assert.is(find([0, 1, 2, 11_000, 3, 4], 5), 3)
})

test('one that runs behind is none until it is right again', () => {
  assert.is(find([7300, 7301, 0, 1], 2), 0)
  assert.is(find([7300, 7301, 0, 1, 7302], 7303), 4)
})

test('long retentions want a longer silence', () => {
  assert.is(find([0, 200], 201, 30), 1)
  assert.is(find([0, 200], 201, 730), 0)
})

test.run()
