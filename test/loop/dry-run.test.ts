/** `--dry-run` says what a flash would say before it touches the disk, whatever the image is packed in. */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { ENCODINGS } from '#test/support/disk/encodings.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { createLoop } from '#test/support/disk/loop.ts'

const test = suite('dry run')
const IMAGE = makeDiskImage(4 * 1024 * 1024)

/** One of each format. */
const OF_EACH = new Map(ENCODINGS.map((encoding) => [encoding.format, encoding])).values()

for (const { name, format, encode } of OF_EACH) {
  test(`${name}: a table for other sectors is found before anything is written`, async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-dry-run-'))
    const image = join(folder.path, `disk.${format}`)
    writeFileSync(image, encode(IMAGE))
    for (const [sectorBytes, expected] of [
      [512, 0],
      [4096, 1],
    ] as const) {
      await using loop = await createLoop({ megabytes: 16, sectorBytes })
      const argv = ['flash', '--image', image, '--target', loop.device, '--dry-run', '--json']
      const { code, stdout } = await runFlasher(argv)
      const { ok, errors } = JSON.parse(stdout)
      assert.equal([code, ok, errors.length], [expected, expected === 0, expected])
      if (expected === 1) assert.match(errors[0], /made for disks with 512-byte sectors/)
      assert.ok((await readFile(loop.backing)).every((byte) => byte === 0))
    }
  })
}

test('standard input is not read', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  const argv = ['flash', '--image', '-', '--format', 'img', '--target', loop.device, '--dry-run']
  const { code, stdout } = await runFlasher(argv, { input: Buffer.alloc(0) })
  assert.is(code, 0)
  assert.match(stdout, /would go ahead/)
})

if (process.geteuid?.() === 0) test.run()
