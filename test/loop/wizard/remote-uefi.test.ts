/** A driven machine asks its firmware for one boot of the flashed disk; the flash is done either way. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { driveMachine, entryOf, openServer, runOf } from '#test/support/terminal/remote-fixture.ts'

const test = suite('server-driven, UEFI')
const run = process.getuid?.() === 0 ? test : test.skip

const IMAGE = makeDiskImage(6 * 2 ** 20)
const PLACE = 'pci-0000:00:05.0'
const TARGET = { bty_image_ref: 'a'.repeat(64), target_disk_serial: `path:${PLACE}` }

const serveImage = () =>
  startHostileServer((request, response) => {
    response.writeHead(200, { 'content-length': IMAGE.length })
    response.end(request.method === 'HEAD' ? '' : IMAGE)
  })

for (const [setting, answer, words] of [
  ['yes', { ok: true, value: 'it boots once' }, 'UEFI: it boots once.'],
  [
    '1',
    { ok: false, refusal: 'no UEFI here' },
    /^UEFI: no one-shot boot of \/dev\/loop\d+: no UEFI here\.$/,
  ],
] as const) {
  run(`the firmware is asked (${words}), and the flash is done either way`, async () => {
    await using images = await serveImage()
    await using server = await openServer([entryOf(`${images.origin}/debian.img`)])
    await using loop = await createLoop({ megabytes: 16 })
    await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
    const asked: string[] = []
    const bootOnce = async ({ node }: { readonly node: string }) => {
      asked.push(node)
      return answer
    }
    const box = await driveMachine({
      server: server.url,
      places: { [PLACE]: loop.device },
      env: { FLASHER_REGISTER_UEFI_BOOT: setting },
      parts: { nvram: { bootOnce } },
    })
    assert.equal(box.outcome, { kind: 'exit', code: 0 })
    assert.equal(asked, [loop.device])
    assert.ok(
      box.said.some((line) => (typeof words === 'string' ? line === words : words.test(line))),
    )
    assert.is((await runOf(server)).phases, 'started write verify sync uefi done')
  })
}

test.run()
