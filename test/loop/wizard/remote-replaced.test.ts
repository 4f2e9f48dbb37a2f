/** A planned image that was replaced meanwhile: the plan is asked for again, or the disk stays as it is. */
import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { makeStale, readDisk } from '#test/support/disk/writer.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { driveMachine, entryOf, openServer, runOf } from '#test/support/terminal/remote-fixture.ts'

const test = suite('server-driven: an image that was replaced')
const run = process.getuid?.() === 0 ? test : test.skip

const IMAGE = makeDiskImage(3 * 2 ** 20)
const SHA = createHash('sha256').update(IMAGE).digest('hex')
const OLD = '0'.repeat(64)
const PLACE = 'pci-0000:00:05.0'
const TARGET = { bty_image_ref: 'a'.repeat(64), target_disk_serial: `path:${PLACE}` }

/** As a cache serves it: with its digest. */
const serveImage = (onAsked: () => void = () => undefined) =>
  startHostileServer((request, response) => {
    onAsked()
    sendFile(IMAGE, request, response, { headers: { 'x-withcache-sha256': SHA } })
  })

run('the plan is asked for again, and one flash is reported', async () => {
  const catalog = [entryOf('http://127.0.0.1:9/none')]
  await using images = await serveImage(() => {
    catalog[0] = entryOf(`${images.origin}/debian.img`, { sha256: SHA })
  })
  catalog[0] = entryOf(`${images.origin}/debian.img`, { sha256: OLD })
  await using server = await openServer(catalog)
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.ok(box.said.some((line) => line.startsWith('The image was replaced since the plan')))
  assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
  assert.is((await runOf(server)).result, 'done')
})

run('where the plan stays as it is, the disk does as well', async () => {
  await using images = await serveImage()
  await using server = await openServer([entryOf(`${images.origin}/debian.img`, { sha256: OLD })])
  await using loop = await createLoop({ megabytes: 16 })
  const stale = await makeStale(loop.device)
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.is(box.outcome.kind, 'interactive')
  const told = await runOf(server)
  assert.is(told.result, 'failed')
  assert.match(told.reason ?? '', `its sha256 is ${SHA}, not ${OLD}`)
  assert.ok((await readDisk(loop.device, 0, stale.length)).equals(stale))
})

test.run()
