/** A machine whose server has a first-boot template for it: fetched once, written with the image, or not flashed. */
import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  CLOUD_PARTS,
  createImageFile,
  readPartFile,
  ROOT_OFFSET,
  SEED_FOLDER,
} from '#test/support/disk/first-boot-image.ts'
import type { Part } from '#test/support/disk/flashed-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { assertBlank, readDisk } from '#test/support/disk/writer.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  driveMachine,
  entryOf,
  MAC,
  openServer,
  runOf,
} from '#test/support/terminal/remote-fixture.ts'

const test = suite('server-driven, with a first-boot template')

const PLACE = 'pci-0000:00:05.0'
const ORDER = {
  boot_mode: 'flasher-flash-once',
  bty_image_ref: 'a'.repeat(64),
  target_disk_serial: `path:${PLACE}`,
  first_boot: 'web',
}

/** A server with the image and a template, and a machine with one disk. */
async function openLab(parts: readonly Part[] = CLOUD_PARTS) {
  await using undo = new AsyncDisposableStack()
  const file = undo.use(await createImageFile(parts))
  const image = await readFile(file.path)
  const images = undo.use(
    await startHostileServer((request, response) => {
      response.writeHead(200, { 'content-length': image.length })
      response.end(request.method === 'HEAD' ? undefined : image)
    }),
  )
  const catalog = [entryOf(`${images.origin}/debian.img`, { sizeBytes: image.length })]
  const server = undo.use(await openServer(catalog))
  const loop = undo.use(await createLoop({ megabytes: 48 }))
  await server.put('/first-boot/web', { hostname: '{{name}}', commands: ['true'] })
  const held = undo.move()
  return {
    server,
    device: loop.device,
    drive: () => driveMachine({ server: server.url, places: { [PLACE]: loop.device } }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

test('the configuration is on the disk when it is done', async () => {
  await using lab = await openLab()
  await lab.server.arm({ ...ORDER, name: 'web-1' })
  const box = await lab.drive()
  assert.equal(box.outcome, { kind: 'exit', code: 0 }, JSON.stringify(box))
  const metaData = await readPartFile(lab.device, ROOT_OFFSET, `${SEED_FOLDER}/meta-data`)
  assert.match(metaData ?? '', /^instance-id: "flasher-[0-9a-f]{12}"\nlocal-hostname: "web-1"\n$/)
  assert.is((await runOf(lab.server)).result, 'done')
})

test('a template that does not fit the machine: nothing is written, a person learns why', async () => {
  await using lab = await openLab()
  await lab.server.arm(ORDER)
  const box = await lab.drive()
  assert.is(box.outcome.kind, 'interactive')
  assert.match(JSON.stringify(box), 'the machine has no name')
  assert.ok((await readDisk(lab.device, 0, 4096)).every((byte) => byte === 0))
})

test('an image without cloud-init: the disk cannot boot, and the run has failed', async () => {
  await using lab = await openLab([{ megabytes: 4 }, { megabytes: 16, mkfs: ['mkfs.ext4', '-q'] }])
  await lab.server.arm({ ...ORDER, name: 'web-1' })
  const box = await lab.drive()
  assert.is(box.outcome.kind, 'interactive')
  const { result, reason } = await runOf(lab.server)
  assert.is(result, 'failed')
  assert.match(reason ?? '', 'no cloud-init')
  await assertBlank(lab.device)
  assert.is((await lab.server.machines.find(MAC))?.last_flashed_at, null)
})

test.run()
