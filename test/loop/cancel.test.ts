/** A flash that is cancelled, wherever it stands: it returns soon and leaves nothing that boots. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Fault } from '#kit/foundation/fault.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import {
  createFaultyDisk,
  inMemory,
  scripted,
  type FaultyDisk,
} from '#test/support/disk/faulty-disk.ts'
import {
  assertBlank,
  assertSame,
  execute,
  expectedDisk,
  flash,
  makeStale,
  readDisk,
  untilFree,
  type FlashOrder,
} from '#test/support/disk/writer.ts'

const test = suite('cancelled flashes')
const MIB = 1 << 20
const SIZE = 12
const IMAGE = makeDiskImage(SIZE * MIB)
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

test.run()
