import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { checkHead } from '#engine/image/rules/image-head.ts'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'

const test = suite('the head of an image')
const refusalOf = (head: Buffer, sectorBytes = 512) => {
  const checked = checkHead('a.img', head, sectorBytes)
  return checked.ok ? null : checked.refusal
}

test('disk images pass, with a table for these sectors or with none', () => {
  assert.is(refusalOf(makeDiskImage(1 << 20)), null)
  assert.is(refusalOf(makeDiskImage(1 << 20, { sectorBytes: 4096 }), 4096), null)
  assert.is(refusalOf(makeNoise(5000)), null)
  assert.is(refusalOf(Buffer.alloc(1)), null)
})
test('a file that cannot be a disk image is refused with a hint', () => {
  const tar = pipeThrough(['tar', '-cf-', '/etc/hostname'], Buffer.alloc(0))
  const rows: readonly (readonly [Buffer, string])[] = [
    [Buffer.alloc(0), 'a.img is empty'],
    [tar, 'a.img holds a tarball: extract first'],
    [pipeThrough(['gzip', '-c'], tar), 'a.img holds gz data inside: extract it first'],
    [Buffer.from('PK\x03\x04 and more'), 'a.img holds zip data inside: extract it first'],
  ]
  for (const [head, words] of rows) assert.is(refusalOf(head), words)
})
test('whoever names the format of raw bytes is believed, of a compressed archive is not', () => {
  const tar = pipeThrough(['tar', '-cf-', '/etc/hostname'], Buffer.alloc(0))
  const check = (format: 'img' | 'img.gz') =>
    checkHead('a.img', tar, 512, { format, anyContent: true }).ok
  assert.equal([check('img'), check('img.gz')], [true, false])
})
const words = (made: number, has: number) =>
  `a.img is made for disks with ${made}-byte sectors, but this disk has ${has}-byte sectors`
test('a table for other sectors is refused', () => {
  assert.is(refusalOf(makeDiskImage(1 << 20), 4096), words(512, 4096))
  assert.is(refusalOf(makeDiskImage(1 << 20, { sectorBytes: 4096 })), words(4096, 512))
})
test.run()
