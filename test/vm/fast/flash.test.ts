/** A real Debian over HTTP onto real block devices, compared byte for byte, and booted. */
import { open } from 'node:fs/promises'
import { execFileSync } from 'node:child_process'
import { basename } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { bootToLogin } from '#test/support/vm/boot.ts'
import { findImageObstacle, openDebianImage } from '#test/support/disk/debian-image.ts'
import { startFileServer } from '#test/support/http/file-server.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { createLoop } from '#test/support/disk/loop.ts'

const test = suite('flash')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** The published forms; the last one written is the one that is booted. */
const PUBLISHED = ['img.zst', 'img.xz', 'qcow2'] as const

run('Debian is flashed from HTTP in three formats, and boots', async () => {
  const image = await openDebianImage()
  const raw = await image.file('img')
  const bytes = await sizeOf(raw)
  const files = await Promise.all(PUBLISHED.map((format) => image.file(format)))
  await using server = await startFileServer(files)
  // A little larger than the image and full of an earlier owner's data.
  await using loop = await createLoop({ sizeBytes: bytes + 8 * 1024 * 1024 })
  for (const file of files) {
    execFileSync('sh', ['-c', `head -c ${bytes} /dev/urandom >"$0"`, loop.device])
    const url = `${server.origin}/${encodeURIComponent(basename(file))}`
    const ended = await runFlasher(['flash', '--image', url, '--target', loop.device, '--yes'])
    assert.is(ended.code, 0, `${url}: ${ended.stderr}`)
    execFileSync('cmp', ['-n', String(bytes), raw, loop.device])
  }
  assert.match(await bootToLogin(loop.device), /flasher-test login: $/)
})

async function sizeOf(path: string) {
  await using handle = await open(path)
  return (await handle.stat()).size
}

test.run()
