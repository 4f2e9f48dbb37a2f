import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { GREETING, renderGreeter, SECTOR } from '#build/demo/boot-sector.ts'
import { planMachine } from '#build/demo/machine.ts'

const OPTIONS = {
  accelerator: 'tcg',
  isWindow: false,
  port: 8085,
  disk: '/home/a, b/disk.img',
  serialLog: '/home/a, b/serial.log',
  serialScreen: '/home/a, b/serial-screen',
  callPort: 40001,
} as const

const test = suite("the demo's machine")

test('boots from the server first, then from its disk, and has one core', () => {
  const words = planMachine(OPTIONS)
  assert.ok(words.includes('user,id=net,bootfile=http://10.0.2.2:8085/pxe-bootstrap.ipxe'))
  const [card = '', disk = ''] = words.filter((word) => word.includes('bootindex='))
  assert.match(card, /^virtio-net-pci,.*bootindex=1$/)
  assert.match(disk, /^virtio-blk-pci,.*bootindex=2$/)
  assert.is(words[words.indexOf('-smp') + 1], '1')
})

test('paths with commas and blanks stay whole', () => {
  const words = planMachine({ ...OPTIONS, isWindow: true })
  for (const name of ['disk.img', 'serial.log', 'serial-screen']) {
    assert.ok(
      words.some((word) => word.endsWith(`=/home/a,, b/${name}`)),
      name,
    )
  }
})

test('its screen is shown only where that is wanted, and the serial line always speaks', () => {
  const without = planMachine(OPTIONS).join(' ')
  assert.match(without, '-machine graphics=off -display none')
  const withWindow = planMachine({ ...OPTIONS, isWindow: true }).join(' ')
  assert.not.match(withWindow, /-display|graphics=off/)
  for (const words of [without, withWindow]) assert.match(words, '-serial chardev:serial')
})

test('its image is a disk whose boot sector greets, with a volume where that could be made', () => {
  const [type, first, sectors] = [4, 8, 12]
  const entryOf = (sector: Buffer, at: number) => {
    const entry = sector.subarray(446 + 16 * at)
    return [entry.readUInt8(type), entry.readUInt32LE(first), entry.readUInt32LE(sectors)]
  }
  const all = (64 * 2 ** 20) / SECTOR
  const without = renderGreeter(64 * 2 ** 20, false)
  assert.equal(entryOf(without, 0), [0xda, 2048, all - 2048])
  const sector = renderGreeter(64 * 2 ** 20, true)
  assert.equal(entryOf(sector, 0), [0x83, 2048, 16_384])
  assert.equal(entryOf(sector, 1), [0xda, 18_432, all - 18_432])
  assert.is(sector.byteLength, SECTOR)
  assert.is(sector.readUInt16BE(510), 0x55aa)
  assert.ok(sector.includes(GREETING))
})

test.run()
