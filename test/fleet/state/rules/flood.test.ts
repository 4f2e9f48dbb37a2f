import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  canFlood,
  FLOOD_NOTES,
  FLOOD_WINDOW_MS,
  isOver,
  nextWindow,
  type FloodWindow,
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

test.run()
