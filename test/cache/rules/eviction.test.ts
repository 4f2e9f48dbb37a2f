import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planEviction } from '#cache/rules/eviction.ts'

const test = suite('eviction')

const blob = fc.record({
  sha256: fc.uuid(),
  sizeBytes: fc.integer({ min: 0, max: 100 }),
  usedAt: fc.integer({ min: 0, max: 50 }),
  isNeeded: fc.boolean(),
})
const rooms = fc.record({
  blobs: fc.uniqueArray(blob, { selector: ({ sha256 }) => sha256, maxLength: 12 }),
  promisedBytes: fc.integer({ min: 0, max: 200 }),
  neededBytes: fc.integer({ min: 0, max: 300 }),
  maxBytes: fc.integer({ min: 0, max: 600 }),
})

test('makes enough room, of the oldest alone, and touches nothing that is needed', () => {
  fc.assert(
    fc.property(rooms, (room) => {
      const plan = planEviction(room)
      const leaving = plan.ok ? plan.value : []
      const gone = room.blobs.filter(({ sha256 }) => leaving.includes(sha256))
      const kept = room.blobs.filter(({ sha256 }) => !leaving.includes(sha256))
      assert.ok(gone.every(({ isNeeded }) => !isNeeded))
      const youngest = Math.max(...gone.map(({ usedAt }) => usedAt), -1)
      assert.ok(kept.every(({ isNeeded, usedAt }) => isNeeded || usedAt >= youngest))
      const stored = kept.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
      const isWithin = stored + room.promisedBytes + room.neededBytes <= room.maxBytes
      if (plan.ok && room.maxBytes > 0) assert.ok(isWithin)
      if (!plan.ok) {
        const needed = room.blobs.filter(({ isNeeded }) => isNeeded)
        const least = needed.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
        assert.ok(least + room.promisedBytes + room.neededBytes > room.maxBytes)
      }
    }),
  )
})

test('removes nothing where there is room, or no limit', () => {
  const blobs = [{ sha256: 'a', sizeBytes: 50, usedAt: 1, isNeeded: false }]
  const room = { blobs, promisedBytes: 0, neededBytes: 50, maxBytes: 100 }
  assert.equal(planEviction(room), { ok: true, value: [] })
  assert.equal(planEviction({ ...room, neededBytes: 9999, maxBytes: 0 }), { ok: true, value: [] })
  assert.equal(planEviction({ ...room, neededBytes: 51 }), { ok: true, value: ['a'] })
})

test.run()
