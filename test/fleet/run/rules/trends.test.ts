/** Trends: what is counted of flashes, by day, image and model. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { countTrends, type EndedFlash } from '#fleet/run/rules/waterfall.ts'

const test = suite('trends')

const flash = (more: Partial<EndedFlash> = {}): EndedFlash => ({
  began: '2026-11-26T12:00:00.000Z',
  mac: '52:54:00:00:00:01',
  isDone: true,
  image: 'debian.img.zst',
  model: 'Samsung SSD 980',
  seconds: 60,
  ...more,
})
const DAYS = ['2026-11-25', '2026-11-26']
const count = (flashes: readonly EndedFlash[]) =>
  countTrends(flashes, DAYS, (iso) => iso.slice(0, 10))

test('days are in their order, with those of which there is nothing', () => {
  const { days } = count([
    flash({ seconds: 10 }),
    flash({ seconds: 40 }),
    flash({ isDone: false, seconds: 1 }),
    flash({ began: '2026-11-01T00:00:00.000Z' }),
  ])
  assert.equal(days, [
    { name: '2026-11-25', done: 0, failed: 0, medianSeconds: null },
    { name: '2026-11-26', done: 2, failed: 1, medianSeconds: 25 },
  ])
})

test('images and models come with the most flashes first, and without those that nobody knows', () => {
  const { images, models } = count([
    flash({ image: 'a', model: '  ' }),
    flash({ image: 'b', model: null }),
    flash({ image: 'b', isDone: false }),
    flash({ image: null, seconds: null }),
    ...Array.from({ length: 9 }, (_, at) => flash({ image: `rare-${at}`, model: 'other ' })),
  ])
  assert.equal(images[0], { name: 'b', done: 1, failed: 1, medianSeconds: 60 })
  assert.is(images[1]?.name, 'a')
  assert.is(images.length, 6)
  assert.equal(
    models.map(({ name, done, failed }) => [name, done, failed]),
    [
      ['other', 9, 0],
      ['Samsung SSD 980', 1, 1],
    ],
  )
  assert.equal(count([]).images, [])
})

test.run()
