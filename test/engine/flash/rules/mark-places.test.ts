/** Marks lie inside the disk and outside the image, and a disk that is smaller than it says cannot keep all of them. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MARK_BYTES, planMarks } from '#engine/flash/rules/last-partition.ts'

const test = suite('marks')
const MIB = 2 ** 20
const GIB = 1024 * MIB

test('only at the very end where nothing grows, and nowhere on a disk without a body', () => {
  const disk = { sizeBytes: 200 * MIB, imageEnd: 90 * MIB, grownEnd: null }
  assert.equal(planMarks(disk), [200 * MIB - MARK_BYTES])
  assert.equal(planMarks({ ...disk, sizeBytes: MIB }), [])
})

test('behind the image where a partition grows, and few of them', () => {
  const disk = { sizeBytes: 200 * MIB, imageEnd: 90 * MIB - 5, grownEnd: 199 * MIB }
  assert.equal(planMarks(disk), [90 * MIB, 180 * MIB, 200 * MIB - MARK_BYTES])
  for (const imageEnd of [8 * MIB, GIB]) {
    const places = planMarks({ sizeBytes: 1024 * GIB, imageEnd, grownEnd: 1023 * GIB })
    assert.ok(places.length < 1000, String(places.length))
    assert.ok(places.every((at) => at >= imageEnd && at <= 1024 * GIB - MARK_BYTES))
  }
})

test('one of them falls into the image, wherever the disk begins anew', () => {
  const [sizeBytes, imageEnd] = [40 * GIB, 700 * MIB]
  const places = planMarks({ sizeBytes, imageEnd, grownEnd: sizeBytes - MIB })
  for (let real = imageEnd + MIB; real < sizeBytes; real += 97 * MIB) {
    const isFound = places.some((at) => at >= real && at % real < imageEnd)
    assert.ok(isFound, `a real size of ${real}`)
  }
})

test.run()
