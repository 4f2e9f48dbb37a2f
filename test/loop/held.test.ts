/** A disk is ours alone from the first look to the last write, and given back after it. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDevice } from '#engine/disk/device.ts'
import { createShell } from '#kit/host/shell.ts'
import { createZeroer } from '#engine/flash/copier.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  assertSame,
  flash,
  isFree,
  makeStale,
  readDisk,
  untilFree,
} from '#test/support/disk/writer.ts'

const test = suite('held disks')
const MIB = 1 << 20
const IMAGE = makeDiskImage(5 * MIB)
const source = () => createMemorySource(IMAGE, { name: 'disk.img' })
const shell = createShell({ env: process.env })

test('nobody else gets it before the flash is over', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  const { device } = loop
  const free: boolean[] = []
  let looks: Promise<unknown> = Promise.resolve()
  await flash({
    source: source(),
    device,
    onEvent: ({ event }) => {
      if (event === 'writing') looks = looks.then(async () => free.push(await isFree(device)))
    },
  })
  await looks
  assert.ok(free.length >= 3)
  assert.is(free[0], false)
  assert.ok(await isFree(device))
})

test('a disk that somebody else holds is refused untouched', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  const { device } = loop
  const stale = await makeStale(device)
  await using _ = await open(device, constants.O_RDWR | constants.O_EXCL)
  const fault = await faultOf(() => flash({ source: source(), device }))
  assert.is(fault.code, 'target-raced')
  assert.is(fault.message, `${device} is in use by another program`)
  assertSame(await readDisk(device), stale)
})

test('while a command zeroes a range, also after its starter gave the disk back', async () => {
  const trim = 'touch "{}/reached"; while [ -e "{}/flag" ]; do sleep 0.02; done'
  await using disk = await createFaultyDisk({ nbdkit: scripted(8, { trim }), sectorBytes: 512 })
  const { device: node } = disk
  disk.setFlag(true)
  const device = await openDevice({ node, sizeBytes: 8 * MIB, sectorBytes: 512 })
  const zeroer = createZeroer(shell, device, 'discard')
  const zeroed = [MIB, 2 * MIB, 3 * MIB].map((offset) => zeroer.zero({ offset, bytes: MIB }))
  await disk.reached()
  const ended = zeroer[Symbol.asyncDispose]()
  await device[Symbol.asyncDispose]()
  assert.not(await isFree(node))
  disk.setFlag(false)
  await ended
  // Those that had not begun never did.
  assert.equal(await Promise.all(zeroed), [true, false, false])
  await untilFree(node)
})
test.run()
