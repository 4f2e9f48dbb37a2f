import { readFile, writeFile } from 'node:fs/promises'
import process from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { createRun, type Run } from '#engine/inventory/rules/run.ts'
import { divideRun } from '#fleet/run/rules/waterfall.ts'
import { isOtherArch } from '#server/current/machines/image-cards.ts'
import { isTyped, lastFour } from '#server/current/machines/machine-form.ts'
import { renderWaterfall } from '#server/current/runs/run-page.ts'
import { bytesOf, modelOf, stemOf, warnOf } from '#server/current/view/machine-view.ts'
import { entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { originOf } from '#test/support/server/runs.ts'

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

const PICTURE = new URL('../../../../docs/waterfall.svg', import.meta.url)
const at = (seconds: number) =>
  new Date(Date.parse('2026-11-26T08:00:00.000Z') + seconds * 1000).toISOString()
const stamps = {
  power_on_at: at(0),
  script_at: at(38),
  kernel_at: at(39.2),
  initrd_at: at(40.6),
  reset_at: null,
  start_at: at(42.1),
  system_at: at(51.3),
  plan_at: at(58),
}
const run: Run = {
  ...createRun('run-00000001', { ...originOf(MAC), stamps }, at(58.5)),
  result: 'done',
  ended_at: at(118),
  steps: [
    { phase: 'started', at: at(58.5) },
    { phase: 'write', at: at(60) },
    { phase: 'verify', at: at(103) },
    { phase: 'done', at: at(118) },
  ],
  proof: {
    state: 'booted',
    how: 'call',
    since: at(118),
    until: at(1918),
    seconds: 79,
    contacts: 1,
    first_contact_at: at(160),
    last_contact_at: at(160),
    silent_at: null,
    network_at: null,
    keys_before: null,
    is_elsewhere: false,
    call_made_at: at(58),
    reason: null,
  },
}

test('each part is a bar with its seconds, and the picture of the documentation is such a chart', async () => {
  const whole = divideRun(run)
  assert.ok(whole)
  const [svg = ''] = /<svg[^]*<\/svg>/.exec(String(renderWaterfall(whole))) ?? []
  assert.is(svg.match(/<rect/g)?.length, 12)
  assert.match(svg, 'Firmware: 38.0 s')
  const picture = `${svg.replaceAll('currentColor', '#444').replaceAll(/\s*\n\s*/g, '\n')}\n`
  if (process.env['UPDATE'] === '1') await writeFile(PICTURE, picture)
  assert.is(await readFile(PICTURE, 'utf8'), picture)
})

test.run()
