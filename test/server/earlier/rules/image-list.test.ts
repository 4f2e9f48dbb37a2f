/** Which images the page of the earlier line lists, and in which order. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { selectImages, type ShelfQuery, type UsedImage } from '#server/earlier/rules/image-list.ts'

const test = suite('the earlier line: lists of images')

const imageOf = (name: string, given: Partial<UsedImage> = {}): UsedImage => ({
  name,
  path: `/images/${name}`,
  format: 'img.zst',
  size_bytes: 1,
  users: 0,
  ...given,
})

const IMAGES = [
  imageOf('node-2.4.2.img.zst', { users: 3, size_bytes: 20 }),
  imageOf('node-2.4.10.img.zst', { size_bytes: 300 }),
  imageOf('Rescue.qcow2', { format: 'qcow2', users: 1, size_bytes: 5 }),
]

const namesOf = (query: ShelfQuery) => selectImages(IMAGES, query).map(({ name }) => name)

test('each word must occur in the name or the format, whatever its case', () => {
  assert.equal(namesOf({ q: ' NODE  10 ' }), ['node-2.4.10.img.zst'])
  assert.equal(namesOf({ q: 'qcow2' }), ['Rescue.qcow2'])
  assert.equal(namesOf({ q: 'nothing' }), [])
  assert.is(namesOf({}).length, 3)
})

test('images that machines use, and those that none uses', () => {
  assert.equal(namesOf({ used: 'yes' }), ['node-2.4.2.img.zst', 'Rescue.qcow2'])
  assert.equal(namesOf({ used: 'no' }), ['node-2.4.10.img.zst'])
  assert.is(namesOf({ used: 'perhaps' }).length, 3)
})

test('by name as people count, by size, by use; an unknown column changes nothing', () => {
  assert.equal(namesOf({ sort: 'name', q: 'node' }), ['node-2.4.2.img.zst', 'node-2.4.10.img.zst'])
  assert.equal(namesOf({ sort: '-size' })[0], 'node-2.4.10.img.zst')
  assert.equal(namesOf({ sort: '-uses' })[0], 'node-2.4.2.img.zst')
  assert.equal(namesOf({ sort: 'path' }), namesOf({}))
})

test.run()
