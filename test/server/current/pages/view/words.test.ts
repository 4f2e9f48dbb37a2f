import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { bytesOf, modelOf, warnOf, stemOf } from '#server/current/pages/view/machine-view.ts'
import { isTyped, lastFour } from '#server/current/pages/machines/machine-form.ts'
import { isOtherArch } from '#server/current/pages/machines/image-cards.ts'
import { entryOf, REF } from '#test/support/server/machine-fixture.ts'

const test = suite('words of the pages')
const DISK: InventoryDisk = {
  path: '/dev/sda',
  size: '465.8G',
  vendor: 'ATA',
  model: 'Disk 1',
  serial: 'S1',
  tran: 'sata',
  removable: false,
  readonly: false,
}

test('sizes of lsblk count in binary units', () => {
  assert.is(bytesOf(DISK), Math.round(465.8 * 2 ** 30))
  assert.is(bytesOf({ ...DISK, size_bytes: 5 }), 5)
  assert.is(bytesOf({ ...DISK, size: 'huge' }), null)
})

test('models: what the disk calls itself, without saying it twice', () => {
  assert.is(modelOf(DISK), 'ATA Disk 1')
  assert.is(modelOf({ ...DISK, vendor: 'Disk' }), 'Disk 1')
  assert.is(modelOf({ ...DISK, vendor: null, model: ' ' }), '/dev/sda')
})

test('disks: what speaks against them', () => {
  const image = { ...entryOf(REF), format: 'img', sizeBytes: 600e9 }
  const texts = (disk: InventoryDisk, all = [disk]) =>
    warnOf(disk, all, image).map(({ text, isHard }) => `${isHard ? '!' : '?'} ${text}`)
  assert.equal(texts(DISK), ['! Too small for the image.'])
  assert.equal(warnOf(DISK, [DISK], null), [])
  assert.equal(texts({ ...DISK, size: '4T', removable: true }), [
    '? Removable, perhaps a USB stick or memory card.',
  ])
  assert.equal(texts({ ...DISK, size: '4T', readonly: true }), ['! Read-only.'])
  assert.equal(texts({ ...DISK, size: '4T' }, [DISK, DISK]), [
    '! 2 disks of this machine have this serial number.',
  ])
  assert.equal(texts({ ...DISK, serial: null }), [
    '! No serial number, so it cannot be identified safely.',
  ])
})

test('the last four characters of a serial, in any case', () => {
  assert.is(lastFour(' S5GXAB12 '), 'AB12')
  assert.is(isTyped('ab12 ', 'S5GXAB12').ok, true)
  assert.is(isTyped('', 'S5GXAB12').ok, false)
  assert.is(isTyped('x1', 'X1').ok, true)
})

test('architectures: a 32-bit loader on a PC is no other machine', () => {
  assert.is(isOtherArch('i386', 'x86_64'), false)
  assert.is(isOtherArch('x86_64', 'arm64'), true)
  assert.is(isOtherArch(null, 'arm64'), false)
  assert.is(isOtherArch('arm64', null), false)
})

test('names without their endings', () => {
  assert.equal(['debian-13.img.zst', 'a.qcow2', '.img', 'b.tar.gz'].map(stemOf), [
    'debian-13',
    'a',
    '.img',
    'b.tar.gz',
  ])
})

test.run()
