import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SIGNATURE_BYTES } from '#engine/disk/rules/file-systems.ts'
import { isCidata } from '#engine/first-boot/rules/seed-location.ts'

const test = suite('volumes that cloud-init prefers')

/** A volume with texts at their places. */
function volume(...texts: readonly (readonly [number, string])[]) {
  const first = Buffer.alloc(SIGNATURE_BYTES)
  for (const [at, text] of texts) first.write(text, at, 'latin1')
  return first
}

test('FAT of either kind and ISO 9660, by their label in any case', () => {
  assert.ok(isCidata(volume([43, 'CIDATA     FAT16   '])))
  assert.ok(isCidata(volume([71, 'cidata     FAT32   '])))
  assert.ok(isCidata(volume([0x8001, 'CD001'], [0x8028, 'CIDATA'.padEnd(32)])))
})

test('nothing else', () => {
  assert.not.ok(isCidata(volume([43, 'NO NAME    FAT16   '])))
  assert.not.ok(isCidata(volume([43, 'CIDATA2    FAT16   '])))
  assert.not.ok(isCidata(volume([43, 'CIDATA'])))
  assert.not.ok(isCidata(Buffer.alloc(0)))
})

test.run()
