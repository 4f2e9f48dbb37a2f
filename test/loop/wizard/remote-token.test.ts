/** Where the server wants boot tokens: our machines show theirs, and one without ends with a person. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import {
  driveMachine,
  entryOf,
  MAC,
  openServer,
  runOf,
} from '#test/support/terminal/remote-fixture.ts'
import { readDisk } from '#test/support/disk/writer.ts'

const test = suite('server-driven, with boot tokens')
const run = process.getuid?.() === 0 ? test : test.skip

const IMAGE = makeDiskImage(6 * 2 ** 20)
const PLACE = 'pci-0000:00:05.0'
const TARGET = { bty_image_ref: 'a'.repeat(64), target_disk_serial: `path:${PLACE}` }

async function openWizardContext() {
  await using undo = new AsyncDisposableStack()
  const images = undo.use(
    await startHostileServer((request, response) => {
      response.writeHead(200, { 'content-length': IMAGE.length })
      if (request.method === 'HEAD') response.end()
      else response.end(IMAGE)
    }),
  )
  const server = undo.use(
    await openServer([entryOf(`${images.origin}/debian.img`, { sizeBytes: IMAGE.length })], {
      env: { FLASHER_PXE_TOKENS: 'require' },
    }),
  )
  const loop = undo.use(await createLoop({ megabytes: 16 }))
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const script = await (await server.request(`/pxe/${MAC}`)).text()
  const held = undo.move()
  return {
    server,
    loop,
    token: / flasher\.token=(\S+) /.exec(script)?.[1] ?? '',
    drive: (token: string) =>
      driveMachine({
        server: server.url,
        places: { [PLACE]: loop.device },
        env: token === '' ? {} : { FLASHER_PXE_TOKEN: token },
      }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

run('with the token of its boot it is flashed, and tells all of it', async () => {
  await using fixture = await openWizardContext()
  const box = await fixture.drive(fixture.token)
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.ok((await readDisk(fixture.loop.device, 0, IMAGE.length)).equals(IMAGE))
  const { result, phases } = await runOf(fixture.server)
  assert.equal([result, phases.startsWith('started')], ['done', true])
  assert.ok((await fixture.server.machines.find(MAC))?.last_flashed_at)
})

run('without one, or with an old one, nothing is written, and the screen says why', async () => {
  await using fixture = await openWizardContext()
  const bare = await fixture.drive('')
  assert.is(bare.outcome.kind, 'interactive')
  assert.match(JSON.stringify(bare), /no boot token/)
  await fixture.server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const late = await fixture.drive(fixture.token)
  assert.is(late.outcome.kind, 'interactive')
  assert.match(JSON.stringify(late), /given something else to do since/)
  assert.ok((await readDisk(fixture.loop.device, 0, 4096)).every((byte) => byte === 0))
  assert.is((await fixture.server.machines.find(MAC))?.last_flashed_at, null)
})

test.run()
