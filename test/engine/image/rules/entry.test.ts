import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decidePromisedIndex } from '#engine/image/rules/frame-map.ts'

const test = suite('the promised digest of an index')
const INDEX = 'a'.repeat(64)

test('it counts where nobody knows better, or where the promise has a digest itself', () => {
  const cases = [
    [{ isDigestKnown: false, indexSha256: INDEX }, INDEX],
    [{ isDigestKnown: false, indexSha256: INDEX, isPinned: true }, INDEX],
    // A registry that lies could name the file that was asked for, and the index of another one.
    [{ isDigestKnown: true, indexSha256: INDEX }, null],
    [{ isDigestKnown: true, indexSha256: INDEX, isPinned: true }, INDEX],
    [{ isDigestKnown: false }, null],
  ] as const
  for (const [promises, counts] of cases) assert.is(decidePromisedIndex(promises), counts)
})

test.run()
