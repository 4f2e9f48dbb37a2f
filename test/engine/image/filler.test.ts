import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Blocks, createFiller } from '#engine/image/stream-blocks.ts'

const test = suite('filler')

interface Stretch {
  readonly isZero: boolean
  readonly bytes: number
}

/** Hands out stretches in pieces no longer than `most`; what it hands out next to never fits. */
function createPieces(stretches: readonly Stretch[], most: number) {
  const queue = stretches.map((stretch) => ({ ...stretch }))
  let asked = 0
  const blocks: Blocks = {
    async next(into) {
      const first = queue[0]
      if (first === undefined) {
        asked += 1
        return null
      }
      assert.ok(into.length > 0)
      const limit = first.isZero ? first.bytes : Math.min(most, into.length)
      const bytes = Math.min(first.bytes, limit)
      first.bytes -= bytes
      if (first.bytes === 0) queue.shift()
      if (!first.isZero) into.fill(0xdd, 0, bytes)
      return { kind: first.isZero ? 'zeros' : 'data', bytes }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { blocks, timesEnded: () => asked }
}

const expectedOf = (stretches: readonly Stretch[]) =>
  Buffer.concat(stretches.map(({ isZero, bytes }) => Buffer.alloc(bytes, isZero ? 0 : 0xdd)))

const stretches = fc.array(
  fc.record({ isZero: fc.boolean(), bytes: fc.integer({ min: 1, max: 5000 }) }),
)

test('whatever the pieces, whole buffers come out, and zeros where they were', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 7000 }), { minLength: 1 })
  await fc.assert(
    fc.asyncProperty(
      stretches,
      sizes,
      fc.integer({ min: 1, max: 900 }),
      async (parts, wanted, most) => {
        const { blocks } = createPieces(parts, most)
        const filler = createFiller(blocks)
        const expected = expectedOf(parts)
        const found: Buffer[] = []
        for (let n = 0, at = 0; at < expected.length; n += 1) {
          const into = Buffer.alloc(wanted[n % wanted.length] ?? 1, 0xee)
          // Every other time zeros may pass without being written.
          const skipped = n % 2 === 0 ? filler.takeZeros(into.length) : 0
          const bytes = await filler.fill(into.subarray(skipped))
          into.fill(0, 0, skipped)
          found.push(into.subarray(0, skipped + bytes))
          at += skipped + bytes
          if (bytes < into.length - skipped) assert.is(at, expected.length)
        }
        assert.is(await filler.fill(Buffer.alloc(1)), 0)
        assert.ok(Buffer.concat(found).equals(expected))
      },
    ),
  )
})
test('the end is asked for once', async () => {
  const { blocks, timesEnded } = createPieces([{ isZero: false, bytes: 10 }], 100)
  const filler = createFiller(blocks)
  for (let n = 0; n < 3; n += 1) await filler.fill(Buffer.alloc(8))
  assert.is(timesEnded(), 1)
})
test('only zeros that are known are taken, and no more than asked for', async () => {
  const parts = [
    { isZero: false, bytes: 4 },
    { isZero: true, bytes: 1000 },
  ]
  const filler = createFiller(createPieces(parts, 100).blocks)
  assert.is(filler.takeZeros(100), 0)
  assert.is(await filler.fill(Buffer.alloc(6)), 6)
  assert.is(filler.takeZeros(100), 100)
  assert.is(filler.takeZeros(1e9), 898)
  assert.is(filler.takeZeros(1), 0)
})
test.run()
