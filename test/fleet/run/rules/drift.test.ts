/** What counts as drift: the rows of what was written against what is assigned. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideDrift, type LastWritten } from '#fleet/run/rules/waterfall.ts'

const test = suite('drift')

const WRITTEN: LastWritten = {
  isWhole: true,
  image: 'debian-13.img.zst',
  ref: 'r13',
  sha256: 'aa',
  model: 'Samsung SSD 980',
  serial: 'S1',
  at: '2026-11-20T00:00:00.000Z',
}
const ASSIGNED = { ref: 'r13', image: { name: 'debian-13.img.zst', sha256: 'aa' }, serial: 'S1' }
const WIZARD = { ...WRITTEN, ref: null, sha256: null }

for (const [name, assigned, written, why] of [
  ['the same', {}, WRITTEN, null],
  ['never flashed', {}, null, null],
  ['a flash that failed says nothing', { ref: 'r12' }, { ...WRITTEN, isWhole: false }, null],
  ['nothing is assigned', { ref: null, image: null }, WRITTEN, null],
  ['another image', { ref: 'r12', image: { name: 'b', sha256: 'bb' } }, WRITTEN, 'other-image'],
  [
    'another image without a digest',
    { ref: 'r12', image: { name: 'b', sha256: null } },
    WRITTEN,
    'other-image',
  ],
  ['an image that left the catalog', { ref: 'r12', image: null }, WRITTEN, 'other-image'],
  ['the same bytes from another address', { ref: 'r12' }, WRITTEN, null],
  ['the image was replaced', { image: { name: 'x', sha256: 'bb' } }, WRITTEN, 'changed-image'],
  ['no digest was known', {}, { ...WRITTEN, sha256: null }, null],
  ['another disk', { serial: 'S2' }, WRITTEN, 'other-disk'],
  ['a disk without a serial', { serial: null }, WRITTEN, null],
  ['from a stick, by its name the same', {}, WIZARD, null],
  ['from a stick, another name', {}, { ...WIZARD, image: 'mint.iso' }, 'other-image'],
  ['from a stick, without a name', {}, { ...WIZARD, image: null }, null],
  ['from a stick, other bytes', {}, { ...WIZARD, sha256: 'cc' }, 'other-image'],
] as const) {
  test(name, () => {
    assert.is(decideDrift({ ...ASSIGNED, ...assigned }, written)?.why ?? null, why)
  })
}

test.run()
