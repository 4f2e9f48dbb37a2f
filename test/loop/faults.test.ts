/** Disks that fail, lie or go away while they are written: nothing is ever called a success. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDevice } from '#engine/disk/device.ts'
import type { FlashEvent } from '#engine/flash/rules/flash-plan.ts'
import { createZeroer } from '#engine/flash/copier.ts'
import type { Fault, FaultCode } from '#kit/foundation/fault.ts'
import { createShell } from '#kit/host/shell.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import {
  createFaultyDisk,
  type FaultyDisk,
  inMemory,
  scripted,
} from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  assertBlank,
  assertSame,
  execute,
  expectedDisk,
  flash,
  type FlashOrder,
  isFree,
  makeStale,
  readDisk,
  untilFree,
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
      assert.match(fault.message, `${disk.device} does not return what was written`)
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
    assert.match(fault.message, 'the disk rejected a write')
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

const imageSource = (options = {}) => createMemorySource(IMAGE, { name: 'disk.img', ...options })

/** Far more than it takes, far less than waiting for the disk or the source would. */
const SOON_MS = 5000

/** Cancels a flash when `moment` has come, and expects it to end at once. */
async function cancelAt(order: FlashOrder, moment: Promise<unknown>): Promise<Fault> {
  const cancelling = new AbortController()
  let cancelledAt = Number.POSITIVE_INFINITY
  void moment.then(() => {
    cancelledAt = performance.now()
    cancelling.abort()
  })
  const fault = await faultOf(() => flash({ ...order, signal: cancelling.signal }))
  assert.ok(performance.now() - cancelledAt < SOON_MS, 'returned too late')
  assert.is(fault.code, 'cancelled')
  assert.is(fault.message, `cancelled while writing to ${order.device}`)
  return fault
}

const shortly = () => sleep(300)

/** When the disk's first MiB holds zeros, and a moment later. */
async function onceCleared(device: string) {
  for (let tries = 0; tries < 3000; tries += 1) {
    const head = await readDisk(device, 0, MIB)
    if (head.every((byte) => byte === 0)) break
    await sleep(10)
  }
  await shortly()
}

/** Lets the disk answer again, and waits until all that was under way has ended. */
async function release(disk: FaultyDisk) {
  disk.setFlag(false)
  await untilFree(disk.device)
}

test('before the first byte the disk stays as it was', async () => {
  await using disk = await createFaultyDisk({ nbdkit: inMemory(SIZE) })
  const { device } = disk
  const stale = await makeStale(device)
  await cancelAt({ source: imageSource(), device }, Promise.resolve())
  await cancelAt({ source: imageSource({ stallsAt: 0 }), device }, shortly())
  assertSame(await readDisk(device), stale)
})

test('while the source says nothing', async () => {
  for (const stallsAt of [2 * MIB, SIZE * MIB - 100_000]) {
    await using disk = await createFaultyDisk({ nbdkit: inMemory(SIZE) })
    const { device } = disk
    await makeStale(device)
    await cancelAt({ source: imageSource({ stallsAt }), device }, onceCleared(device))
    await assertBlank(device)
    const stale = await readDisk(device)
    await flash({ source: imageSource(), device })
    assertSame(await readDisk(device), expectedDisk(stale, IMAGE))
  }
})

test('while a digest is worked out beforehand', async () => {
  await using disk = await createFaultyDisk({ nbdkit: inMemory(SIZE) })
  const { device } = disk
  const source = imageSource({ name: 'disk.qcow2', stallsAt: MIB })
  const order = { source, device, sha256: 'a'.repeat(64) }
  await cancelAt({ ...order, format: 'qcow2' }, shortly())
})

test('at the first event of each phase', async () => {
  for (const phase of ['write', 'verify'] as const) {
    await using disk = await createFaultyDisk({ nbdkit: inMemory(SIZE) })
    const { device } = disk
    const { promise, resolve } = Promise.withResolvers<void>()
    const source = imageSource()
    const onEvent: FlashOrder['onEvent'] = (event) => {
      if (event.event === 'writing' && event.phase === phase) resolve()
    }
    await cancelAt({ source, device, onEvent }, promise)
    await assertBlank(device)
  }
})

test('when the one who listens stops listening', async () => {
  for (const phase of ['write', 'verify'] as const) {
    await using disk = await createFaultyDisk({ nbdkit: inMemory(SIZE) })
    const { device } = disk
    await makeStale(device)
    const listening = execute({ source: imageSource(), device })
    for await (const event of listening) {
      if (event.event === 'writing' && event.phase === phase) break
    }
    await untilFree(device)
    await assertBlank(device)
  }
})

/** Holds back requests that a shell condition names, while the flag is set. */
const holdBack = (condition: string) =>
  `if ${condition} && [ -e "{}/flag" ]; then touch "{}/reached"; while [ -e "{}/flag" ]; do sleep 0.02; done; fi`
const OF_TAIL = `[ "$4" -ge ${(SIZE - 1) * MIB} ] && [ "$3" -gt 20000 ]`
const STALLS = [
  ['the disk is flushed', { flush: holdBack('true') }],
  ['the body is written', { pwrite: holdBack(`[ "$4" -ge ${4 * MIB} ]`) }],
  ['a run of zeros is made', { trim: holdBack('true') }],
  ['it is read back', { pread: holdBack(`[ "$4" -ge ${MIB} ] && [ "$4" -lt ${4 * MIB} ]`) }],
  ['the last MiB is written', { pwrite: holdBack(OF_TAIL) }],
  [
    'the last MiB is flushed',
    {
      pwrite: `if ${OF_TAIL}; then touch "{}/tail"; fi`,
      flush: holdBack('[ -e "{}/tail" ]'),
    },
  ],
  ['the first MiB is written', { pwrite: holdBack('[ "$4" -eq 4096 ]') }],
  ['the first sectors are written', { pwrite: holdBack('[ "$4" -eq 0 ] && [ "$3" -eq 4096 ]') }],
] as const

for (const [name, scripts] of STALLS) {
  test(`while the disk stalls: ${name}`, async () => {
    await using disk = await createFaultyDisk({ nbdkit: scripted(SIZE, scripts) })
    const { device } = disk
    await makeStale(device)
    disk.setFlag(true)
    await cancelAt({ source: imageSource(), device }, disk.reached())
    await release(disk)
    await assertBlank(device)
  })
}
test('a first-boot step that hangs does not hold up a cancel', async () => {
  await using disk = await createFaultyDisk({ nbdkit: inMemory(SIZE + 4) })
  const reached = Promise.withResolvers<void>()
  const hanging = Promise.withResolvers<void>()
  const beforeEnds = {
    plan: () => () => {
      reached.resolve()
      return hanging.promise
    },
  }
  await cancelAt({ source: imageSource(), device: disk.device, beforeEnds }, reached.promise)
  hanging.resolve()
  await untilFree(disk.device)
  await assertBlank(disk.device)
})

const SMALL_IMAGE = makeDiskImage(5 * MIB)
const source = () => createMemorySource(SMALL_IMAGE, { name: 'disk.img' })
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
