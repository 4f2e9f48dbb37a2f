/** The memory that several disks share, beside disks that hang. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSharedSlots, type SharedPiece } from '../../../runtime/engine/flash/shared-buffer.ts'

const test = suite('the buffer that disks share')

function fill(slots: ReturnType<typeof createSharedSlots>, users: number): readonly SharedPiece[] {
  const pieces: SharedPiece[] = []
  for (let slot = slots.tryTakeDecoded(); slot !== null; slot = slots.tryTakeDecoded()) {
    const place = { offset: pieces.length * slot.length, bytes: slot.length, split: null }
    pieces.push({ ...place, slot, users, abandoned: 0, isCounted: true })
  }
  return pieces
}

test('what only disks hold that were left behind makes room for the others', async () => {
  const slots = createSharedSlots()
  const full = fill(slots, 2)
  const [first, second] = full
  assert.ok(first !== undefined && second !== undefined)
  const waiting = slots.untilDecoded()
  slots.abandon(first)
  assert.is(slots.tryTakeDecoded(), null)
  slots.release(first)
  assert.is.not(await waiting, first.slot)
  slots.abandon(second)
  slots.abandon(second)
  assert.ok(slots.tryTakeDecoded() !== null)
  assert.is(slots.tryTakeDecoded(), null)
  // They come back late, and nothing is counted twice.
  slots.release(first, true)
  slots.release(second, true)
  slots.release(second, true)
  assert.is(slots.tryTakeDecoded(), null)
})

test('every piece that is released by all makes room once', () => {
  const slots = createSharedSlots()
  const full = fill(slots, 2)
  for (const piece of full) {
    slots.release(piece)
    assert.is(slots.tryTakeDecoded(), null)
  }
  for (const piece of full) slots.release(piece)
  assert.is(fill(slots, 1).length, full.length)
})

test.run()
