/** The one flasher: what it plans, how its flashes end, and what it says of the disk then. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type FlashEvent, type FlashOrder, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { assertBlank, makeStale, readDisk } from '#test/support/disk/writer.ts'

const test = suite('flasher')
const MIB = 1 << 20
const IMAGE = makeDiskImage(6 * MIB)
const flasher = createFlasher({ env: process.env })
const { signal } = new AbortController()
const ignore = () => {}
const context = { folder: '', image: '' }

test.before(async () => {
  context.folder = await mkdtemp(join(tmpdir(), 'flasher-flasher-'))
  context.image = join(context.folder, 'disk.img')
  await writeFile(context.image, IMAGE)
})
test.after(() => rm(context.folder, { recursive: true }))

const orderOf = (path: string, more: Partial<FlashOrder> = {}): FlashOrder => ({
  image: context.image,
  format: null,
  targets: [{ path }],
  options: WHOLE_DISK,
  ...more,
})

test('a plan is carried out from its open image; its events come in order', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  const names: string[] = []
  await using planned = await flasher.plan(orderOf(loop.device), signal)
  const onEvent = ({ event }: FlashEvent) => void names.push(event)
  const [outcome] = await flasher.run(planned, { signal, onEvent })
  assert.equal(
    [outcome?.kind, outcome?.kind === 'done' && outcome.bytesWritten],
    ['done', IMAGE.length],
  )
  assert.equal([names[0], ...names.slice(-2)], ['started', 'synced', 'partprobed'])
  assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
})

test('a plan that was kept as a value is carried out, too: the image is opened anew', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  const order = orderOf(loop.device)
  const { disks } = await planOnly(order)
  const kept = disks.map(({ target: { path }, plan }) => ({ target: { path }, plan }))
  const [outcome] = await flasher.run({ order, disks: kept }, { signal, onEvent: ignore })
  assert.is(outcome?.kind, 'done')
})

async function planOnly(order: FlashOrder) {
  await using planned = await flasher.plan(order, signal)
  return planned
}

test('what speaks against a flash is a value, and nothing is written', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  const stale = await makeStale(loop.device)
  const chosen = { serial: null, wwn: null, sizeBytes: 1, diskseq: null }
  await using planned = await flasher.plan(
    orderOf(loop.device, { targets: [{ path: loop.device, chosen }] }),
    signal,
  )
  const [outcome] = await flasher.run(planned, { signal, onEvent: ignore })
  if (outcome === undefined || outcome.kind === 'done') throw new Error('it was written')
  assert.equal([outcome.kind, outcome.code], ['failed', 'plan-refused'])
  assert.match(outcome.reason, /is another disk now than the one that was chosen$/)
  assert.is(outcome.leaves, 'Nothing was written.')
  assert.ok((await readDisk(loop.device)).equals(stale))
})

test('without root: refused before the image is read', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  const powerless = createFlasher({ env: process.env, isRoot: false })
  await using planned = await powerless.plan(orderOf(loop.device), signal)
  const [outcome] = await powerless.run(planned, { signal, onEvent: ignore })
  if (outcome === undefined || outcome.kind === 'done') throw new Error('it was written')
  assert.equal([outcome.code, outcome.leaves], ['root-required', 'Nothing was written.'])
})

test('a cancel leaves the disk without a partition table, and says so', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  await makeStale(loop.device)
  const cancel = new AbortController()
  await using planned = await flasher.plan(orderOf(loop.device), signal)
  const onEvent = ({ event }: FlashEvent) => (event === 'writing' ? cancel.abort() : undefined)
  const [outcome] = await flasher.run(planned, { signal: cancel.signal, onEvent })
  if (outcome === undefined || outcome.kind === 'done') throw new Error('it was written')
  assert.equal([outcome.kind, outcome.code], ['cancelled', 'cancelled'])
  assert.match(outcome.leaves, /has no partition table and cannot boot/)
  await assertBlank(loop.device)
})

test('a listener that throws ends the flash like any failure', async () => {
  await using loop = await createLoop({ megabytes: 8 })
  await using planned = await flasher.plan(orderOf(loop.device), signal)
  const [outcome] = await flasher.run(planned, {
    signal,
    onEvent({ event }) {
      if (event === 'writing') throw new Error('the screen is gone')
    },
  })
  if (outcome === undefined || outcome.kind === 'done') throw new Error('it was written')
  assert.equal([outcome.code, outcome.reason], ['unexpected', 'the screen is gone'])
})

test('a disk that fails in its first MiB is not called untouched', async () => {
  const pwrite = 'if [ "$4" -ge 4096 ]; then echo EIO broken >&2; exit 1; fi'
  await using disk = await createFaultyDisk({ nbdkit: scripted(8, { pwrite }) })
  await using planned = await flasher.plan(orderOf(disk.device), signal)
  const [outcome] = await flasher.run(planned, { signal, onEvent: ignore })
  if (outcome === undefined || outcome.kind === 'done') throw new Error('it was written')
  assert.is(outcome.code, 'write-failed')
  assert.match(outcome.leaves, /has no partition table and cannot boot/)
})

test.run()
