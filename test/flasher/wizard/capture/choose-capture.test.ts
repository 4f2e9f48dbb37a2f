/** Where a captured image goes, by what was typed, and what it is called by default. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderDestination } from '#engine/capture/rules/capture.ts'
import { decideDestination, suggestName } from '#flasher/wizard/capture/choose-capture.ts'

const test = suite('choices of a capture')

const pathOf = (typed: string, isFolder = false) =>
  renderDestination(
    decideDestination(typed, { imageRoot: '/images', name: 'disk.img.zst', isFolder }),
  )

test('a name, a path, a folder, or the address of a cache; the ending is added', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['', '/images/disk.img.zst'],
    ['web', '/images/web.img.zst'],
    [' web.img ', '/images/web.img.zst'],
    ['web.img.zst', '/images/web.img.zst'],
    ['/media/usb/web', '/media/usb/web.img.zst'],
    ['./web 42', './web 42.img.zst'],
    ['/media/usb/', '/media/usb/disk.img.zst'],
    ['http://cache:8081', 'http://cache:8081/captures/disk.img.zst'],
    ['http://cache:8081/captures', 'http://cache:8081/captures/disk.img.zst'],
    ['http://cache:8081/captures/', 'http://cache:8081/captures/disk.img.zst'],
    ['https://cache/lab/captures/', 'https://cache/lab/captures/disk.img.zst'],
    ['http://cache:8081/captures/web', 'http://cache:8081/captures/web.img.zst'],
    ['http://cache:8081/captures/web%2042.img.zst', 'http://cache:8081/captures/web%2042.img.zst'],
  ]
  for (const [typed, path] of rows) assert.is(pathOf(typed), path, typed)
  assert.is(pathOf('/media/usb', true), '/media/usb/disk.img.zst')
})

const suggested = (model: string | null, serial: string | null, taken: readonly string[] = []) =>
  suggestName(
    { node: '/dev/sda', model, identity: { serial, wwn: null, sizeBytes: 1, diskseq: null } },
    taken,
  )

test('by default an image is called like its disk, and never like another image', () => {
  assert.is(suggested('Samsung SSD 980', 'S5GX'), 'samsung-ssd-980-s5gx.img.zst')
  assert.is(suggested(null, null), 'sda.img.zst')
  assert.is(suggested('../etc/passwd', '\u001b[2J'), 'etc-passwd-2j.img.zst')
  assert.is(suggested('\u65e5\u672c', null), 'disk.img.zst')
  assert.is(suggested('x'.repeat(300), null).length, 60 + '.img.zst'.length)
  const taken = ['sda.img.zst', 'sda-2.img.zst']
  assert.is(suggested(null, null, taken), 'sda-3.img.zst')
})

test.run()
