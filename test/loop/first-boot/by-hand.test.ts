/** A person flashes a machine whose server has a first-boot template for it, with and without the template. */
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
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
import { FLASHER } from '#test/support/terminal/flasher.ts'
import {
  driveMachine,
  entryOf,
  MAC,
  openServer,
  runOf,
} from '#test/support/terminal/remote-fixture.ts'
import { openTerminal } from '#test/support/terminal/tmux.ts'
import { goToConfirm } from '#test/support/terminal/wizard-fixture.ts'

const test = suite('a flash by hand, with a first-boot template')

/** A machine that the server sends into the wizard, an image in its folder, and a disk. */
async function openLab() {
  await using undo = new AsyncDisposableStack()
  const images = await mkdtemp(join(tmpdir(), 'flasher-by-hand-'))
  undo.defer(() => rm(images, { recursive: true }))
  const file = undo.use(await createImageFile(CLOUD_PARTS))
  await rename(file.path, join(images, 'debian.img'))
  const loop = undo.use(await createLoop({ megabytes: 32 }))
  const server = undo.use(await openServer([]))
  await server.put('/first-boot/web', { hostname: '{{name}}' })
  const held = undo.move()
  return {
    server,
    device: loop.device,
    async openConfirm() {
      const argv = ['--server', server.url, '--mac', MAC]
      const env = { FLASHER_OFFER_LOOP: '1', FLASHER_IMAGE_ROOT: images }
      const terminal = await openTerminal([process.execPath, FLASHER, ...argv], {
        columns: 100,
        env,
      })
      const screen = await goToConfirm(terminal, 'debian.img', `/dev/${basename(loop.device)}`)
      return { terminal, text: screen.join('\n') }
    },
    readMetaData: () => readPartFile(loop.device, ROOT_OFFSET, `${SEED_FOLDER}/meta-data`),
    takenAt: async () => (await server.machines.find(MAC))?.first_boot_taken_at,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const TUI = { boot_mode: 'flasher-tui', name: 'web-1', first_boot: 'web' }

test('it is written, unless the person leaves it out', async () => {
  await using lab = await openLab()
  await lab.server.arm(TUI)
  {
    const { terminal, text } = await lab.openConfirm()
    await using _ = terminal
    assert.match(text, 'The first-boot template web is written with the image.')
    await terminal.press('t')
    await terminal.waitFor('The first-boot template web is not written.')
    await terminal.press('y')
    await terminal.waitFor('Done. Wrote')
    assert.is(await lab.readMetaData(), null)
    // Nothing was handed out for it.
    assert.is(await lab.takenAt(), null)
  }
  const { terminal } = await lab.openConfirm()
  await using _ = terminal
  await terminal.press('y')
  await terminal.waitFor('Done. Wrote')
  assert.match((await lab.readMetaData()) ?? '', 'local-hostname: "web-1"')
  assert.ok(await lab.takenAt())
})

test('why there is none is said before anything is written', async () => {
  await using lab = await openLab()
  await lab.server.arm({ ...TUI, name: null })
  const { terminal, text } = await lab.openConfirm()
  await using _ = terminal
  assert.match(text.replaceAll(/\s+/g, ' '), /No first-boot template: .*the machine has no name\./)
  assert.match(text, 'ERASE AND FLASH')
  assert.not.match(text, '[t]')
})

test('a template that changed since, so that it no longer fits: nothing is written', async () => {
  await using lab = await openLab()
  await lab.server.arm(TUI)
  const { terminal } = await lab.openConfirm()
  await using _ = terminal
  await lab.server.arm({ ...TUI, name: null })
  await terminal.press('y')
  const failed = await terminal.waitFor('The flash failed')
  assert.match(failed.join(' ').replaceAll(/\s+/g, ' '), /the machine has no name/)
  assert.ok((await readDisk(lab.device)).every((byte) => byte === 0))
})

const PLACE = 'pci-0000:00:05.0'
const ORDER = {
  boot_mode: 'flasher-flash-once',
  bty_image_ref: 'a'.repeat(64),
  target_disk_serial: `path:${PLACE}`,
  first_boot: 'web',
}

/** A server with the image and a template, and a machine with one disk. */
async function openDriven(parts: readonly Part[] = CLOUD_PARTS) {
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
  await using lab = await openDriven()
  await lab.server.arm({ ...ORDER, name: 'web-1' })
  const box = await lab.drive()
  assert.equal(box.outcome, { kind: 'exit', code: 0 }, JSON.stringify(box))
  const metaData = await readPartFile(lab.device, ROOT_OFFSET, `${SEED_FOLDER}/meta-data`)
  assert.match(metaData ?? '', /^instance-id: "flasher-[0-9a-f]{12}"\nlocal-hostname: "web-1"\n$/)
  assert.is((await runOf(lab.server)).result, 'done')
})

test('a template that does not fit the machine: nothing is written, a person learns why', async () => {
  await using lab = await openDriven()
  await lab.server.arm(ORDER)
  const box = await lab.drive()
  assert.is(box.outcome.kind, 'interactive')
  assert.match(JSON.stringify(box), 'the machine has no name')
  assert.ok((await readDisk(lab.device, 0, 4096)).every((byte) => byte === 0))
})

test('an image without cloud-init: the disk cannot boot, and the run has failed', async () => {
  await using lab = await openDriven([
    { megabytes: 4 },
    { megabytes: 16, mkfs: ['mkfs.ext4', '-q'] },
  ])
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
