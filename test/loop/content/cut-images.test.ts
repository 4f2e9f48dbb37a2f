/** A raw image that its own table calls cut, and that misses a length which its catalog knows. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { WHOLE_DISK, type FlashOrder } from '#engine/flash/rules/flash.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { assertBlank, makeStale, readDisk } from '#test/support/disk/writer.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { driveMachine, entryOf, openServer, runOf } from '#test/support/terminal/remote-fixture.ts'

const test = suite('cut images')
const MIB = 2 ** 20
const IMAGE = makeDiskImage(6 * MIB)
const HALF = IMAGE.subarray(0, 3 * MIB)
const flasher = createFlasher({ env: process.env, retryMs: 1 })
const { signal } = new AbortController()
const MISSED = new RegExp(`it has ${HALF.length} bytes, the catalog says ${IMAGE.length}`)

/** `/known…` names its length, all else comes in chunks. */
const serve = () =>
  startHostileServer(({ url = '', method }, response) => {
    const headers = url.startsWith('/known') ? { 'content-length': HALF.length } : {}
    response.writeHead(200, headers)
    response.end(method === 'HEAD' ? undefined : HALF)
  })

const orderOf = (image: string, path: string, sizeBytes: number | null): FlashOrder => ({
  image,
  format: null,
  sizeBytes,
  targets: [{ path }],
  options: WHOLE_DISK,
})

test('where both lengths are known it is refused before the first byte', async () => {
  await using server = await serve()
  await using loop = await createLoop({ megabytes: 8 })
  const stale = await makeStale(loop.device)
  const order = orderOf(`${server.origin}/known.img`, loop.device, IMAGE.length)
  await using planned = await flasher.plan(order, signal)
  assert.ok(planned.disks[0]?.plan.ok)
  // A server without ranges is read from its beginning, which is before the disk is touched.
  const [outcome] = await flasher.run(planned, { signal, onEvent: () => {} })
  assert.match(outcome?.kind === 'failed' ? outcome.reason : '', MISSED)
  assert.ok((await readDisk(loop.device)).equals(stale))
})

test('where its own is known at the end alone, the disk is left without its ends', async () => {
  await using server = await serve()
  await using loop = await createLoop({ megabytes: 8 })
  await makeStale(loop.device)
  const order = orderOf(`${server.origin}/chunked.img`, loop.device, IMAGE.length)
  await using planned = await flasher.plan(order, signal)
  assert.ok(planned.disks[0]?.plan.ok)
  const [outcome] = await flasher.run(planned, { signal, onEvent: () => {} })
  assert.match(outcome?.kind === 'failed' ? outcome.reason : '', MISSED)
  await assertBlank(loop.device)
})

test('a catalog that says as much as there is, or nothing, leaves a warning', async () => {
  await using server = await serve()
  await using loop = await createLoop({ megabytes: 8 })
  for (const [name, sizeBytes] of [
    ['known.img', HALF.length],
    ['known.img', null],
    ['chunked.img', HALF.length],
  ] as const) {
    const order = orderOf(`${server.origin}/${name}`, loop.device, sizeBytes)
    await using planned = await flasher.plan(order, signal)
    const [outcome] = await flasher.run(planned, { signal, onEvent: () => {} })
    assert.match(outcome?.kind === 'done' ? (outcome.warnings ?? []).join() : '', /is cut off/)
  }
})

test('a machine refuses by what the catalog of its server says', async () => {
  await using files = await serve()
  await using loop = await createLoop({ megabytes: 8 })
  const stale = await makeStale(loop.device)
  for (const [name, isTouched] of [
    ['known.img', false],
    ['chunked.img', true],
  ] as const) {
    const entry = entryOf(`${files.origin}/${name}`, { sizeBytes: IMAGE.length })
    await using server = await openServer([entry])
    await server.arm({
      bty_image_ref: entry.ref,
      boot_mode: 'flasher-flash-once',
      target_disk_serial: 'path:pci-1',
    })
    const places = { 'pci-1': loop.device }
    const { reboots } = await driveMachine({ server: server.url, places })
    const run = await runOf(server)
    assert.equal([reboots, run.result], [0, 'failed'], name)
    assert.match(run.reason ?? '', MISSED)
    if (isTouched) await assertBlank(loop.device)
    else assert.ok((await readDisk(loop.device)).equals(stale))
  }
})

test.run()
