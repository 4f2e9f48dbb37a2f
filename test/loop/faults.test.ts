/** Disks that fail, lie or go away while they are written: nothing is ever called a success. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FaultCode } from '#kit/foundation/fault.ts'
import type { FlashEvent } from '#engine/flash/rules/flash.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import {
  createFaultyDisk,
  inMemory,
  scripted,
  type FaultyDisk,
} from '#test/support/disk/faulty-disk.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  assertBlank,
  assertSame,
  expectedDisk,
  flash,
  makeStale,
  readDisk,
  type FlashOrder,
} from '#test/support/disk/writer.ts'

const test = suite('disks that fail')
const MIB = 1 << 20
const SIZE = 12
const IMAGE = makeDiskImage(SIZE * MIB)
const sourceOf = (image = IMAGE) => createMemorySource(image, { name: 'disk.img' })

const flashFault = (disk: FaultyDisk, order: Partial<FlashOrder> = {}) =>
  faultOf(() => flash({ source: sourceOf(), device: disk.device, ...order }))

/** Does something once, when a phase begins. */
const when = (phase: 'write' | 'verify', act: () => void) => (event: FlashEvent) => {
  if (event.event === 'writing' && event.phase === phase && event.note !== undefined) act()
}

/** Fails requests that reach a byte. */
const fails = (at: number, error: string) =>
  `if [ "$4" -le ${at} ] && [ $(($4 + $3)) -gt ${at} ]; then echo ${error} >&2; exit 1; fi`
const onFlag = (script: string) => `if [ -e "{}/flag" ]; then ${script}; fi`

test('a write error names the disk and the place, and leaves it blank', async () => {
  const at = 7 * MIB + 512
  const pwrite = fails(at, 'EIO broken')
  await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, { pwrite }) })
  const fault = await flashFault(disk, { change: (plan) => ({ ...plan, zeros: 'write' }) })
  assert.is(fault.code, 'write-failed')
  const [, found] = /^\/dev\/loop\d+: write error at byte (\d+) \(EIO\)$/.exec(fault.message) ?? []
  assert.ok(Number(found) <= at && Number(found) > at - 4 * MIB, fault.message)
  await assertBlank(disk.device)
})

test('a disk that takes no writes fails at byte 0, before it is half written', async () => {
  const nbdkit = ['--filter=error', ...inMemory(SIZE), 'error-pwrite=EIO', 'error-pwrite-rate=100%']
  await using disk = await createFaultyDisk({ nbdkit })
  const fault = await flashFault(disk)
  assert.is(fault.code, 'write-failed')
  assert.match(fault.message, 'write error at byte 0 (EIO)')
})

for (const [name, at] of [
  ['its first sector', 0],
  ['its first MiB', MIB - 4096],
  ['its last sector', SIZE * MIB - 512],
] as const) {
  test(`a write error in ${name}, at the very end, leaves the disk blank`, async () => {
    const pwrite = onFlag(fails(at, 'EIO'))
    await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, { pwrite }) })
    await makeStale(disk.device)
    const fault = await flashFault(disk, { onEvent: when('verify', () => disk.setFlag(true)) })
    assert.is(fault.code, 'write-failed')
    // What cannot be written cannot be cleared either, but the first sectors decide.
    await assertBlank(disk.device, 4096)
  })
}

test('a read error in the verification names the place', async () => {
  const at = 4 * MIB + 4096
  const pread = fails(at, 'EIO')
  await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, { pread }) })
  const fault = await flashFault(disk)
  assert.is(fault.code, 'verify-failed')
  assert.match(fault.message, /: read error at byte \d+ \(EIO\)$/)
})

test('a disk that cannot be read at its ends any more does not stay bootable', async () => {
  const pread = onFlag(fails(SIZE * MIB - 512, 'EIO'))
  await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, { pread }) })
  const fault = await flashFault(disk, { onEvent: when('verify', () => disk.setFlag(true)) })
  assert.is(fault.code, 'verify-failed')
  disk.setFlag(false)
  await assertBlank(disk.device)
})

for (const [name, script] of [
  ['drops what is written', 'cat > /dev/null; exit 0'],
  [
    'flips a bit of what is written',
    "tr '\\000-\\377' '\\001-\\377\\000' | dd of={}/data bs=1M seek=$4 oflag=seek_bytes conv=notrunc status=none; exit 0",
  ],
] as const) {
  for (const at of [1000, 5 * MIB, SIZE * MIB - 1]) {
    test(`a disk that ${name} at byte ${at} is found out`, async () => {
      const pwrite = `if [ "$4" -le ${at} ] && [ $(($4 + $3)) -gt ${at} ]; then ${script}; fi`
      await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, { pwrite }) })
      const image = makeNoise(SIZE * MIB)
      const fault = await flashFault(disk, { source: sourceOf(image) })
      assert.is(fault.code, 'verify-failed')
      assert.match(fault.message, `${disk.device} does not hold what was written`)
      const [, from, to] = / between byte (\d+) and (\d+)$/.exec(fault.message) ?? []
      assert.ok(Number(from) <= at && at < Number(to), fault.message)
    })
  }
}

for (const [phase, code] of [
  ['write', 'write-failed'],
  ['verify', 'verify-failed'],
] as const satisfies readonly (readonly [string, FaultCode])[]) {
  test(`a disk that vanishes in phase ${phase} is named by the fault`, async () => {
    await using disk = await createFaultyDisk({ nbdkit: inMemory(SIZE) })
    const fault = await flashFault(disk, { onEvent: when(phase, () => disk.vanish()) })
    assert.is(fault.code, code)
    assert.match(fault.message, /^\/dev\/loop\d+: /)
  })
}

test('a flush that fails is a failure: at the start, behind the body, at the end', async () => {
  for (const phase of ['start', 'write', 'verify'] as const) {
    const flush = onFlag('echo EIO >&2; exit 1')
    await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, { flush }) })
    if (phase === 'start') disk.setFlag(true)
    const onEvent = phase === 'start' ? () => {} : when(phase, () => disk.setFlag(true))
    const fault = await flashFault(disk, { onEvent })
    assert.is(fault.code, 'write-failed', phase)
    assert.match(fault.message, 'the disk did not take what was written')
    await assertBlank(disk.device)
  }
})

test('zeros that the disk refuses to make by command are written', async () => {
  const refuse = 'echo EOPNOTSUPP >&2; exit 1'
  for (const zeros of ['zero-out', 'zero-range', 'discard'] as const) {
    const scripts = { trim: refuse, zero: refuse }
    await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, scripts) })
    const stale = await makeStale(disk.device)
    await flash({ source: sourceOf(), device: disk.device, change: (plan) => ({ ...plan, zeros }) })
    assertSame(await readDisk(disk.device), expectedDisk(stale, IMAGE))
  }
})

test('a disk that only says that it zeroed is found out by samples', async () => {
  await using disk = await createFaultyDisk({
    nbdkit: scripted(SIZE, { trim: 'exit 0', zero: 'exit 0' }),
  })
  await makeStale(disk.device)
  const fault = await flashFault(disk)
  assert.is(fault.code, 'verify-failed')
  await assertBlank(disk.device)
})

test('one that zeroes the ends of a range alone is found out by a full verification', async () => {
  const trim =
    'dd if=/dev/zero of={}/data bs=65536 count=1 seek=$4 oflag=seek_bytes conv=notrunc status=none; ' +
    'dd if=/dev/zero of={}/data bs=65536 count=1 seek=$(($4 + $3 - 65536)) oflag=seek_bytes conv=notrunc status=none; exit 0'
  await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, { trim }) })
  await makeStale(disk.device)
  const fault = await flashFault(disk, { verify: 'all' })
  assert.is(fault.code, 'verify-failed')
  assert.match(fault.message, / between byte \d+ and \d+$/)
  await assertBlank(disk.device)
})
test.run()
