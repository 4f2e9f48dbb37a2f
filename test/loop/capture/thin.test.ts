/** Thin disks: what is hashed and counted of their zeros, and the digest that is left out where there are too many. */
import { createHash } from 'node:crypto'
import { mkdtempDisposable, open, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openCapture, runCapture, toFile } from '#engine/capture/capturer.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { run } from '#test/support/capture/lived/volume.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('captured thin disks')
const MIB = 1 << 20
const GIB = 2 ** 30

/** One swap partition over all of it: only its header and what lies around it are used. */
async function makeThin(path: string, bytes: number) {
  await writeFile(path, '')
  await using file = await open(path, 'r+')
  await file.truncate(bytes)
  await run({
    input: `label: gpt\nstart=2048, size=${bytes / 512 - 4096}, type=S\n`,
  })`sfdisk --quiet ${path}`
  const header = Buffer.alloc(4096)
  header.write('SWAPSPACE2', 4086, 'latin1')
  header.writeUInt32LE(1, 1024)
  header.writeUInt32LE((bytes - 2 * MIB) / 4096 - 1, 1028)
  await file.write(header, 0, header.length, MIB)
  // Boot code, so that not all of it is zeros.
  await file.write(makeNoise(400, 3), 0, 400, 0)
}

async function captureThin(bytes: number, folder: string) {
  const path = join(folder, `disk-${bytes}`)
  await makeThin(path, bytes)
  await using source = await createLoop({ backing: path })
  const { signal } = new AbortController()
  const env = process.env
  const order = { source: source.device, generalize: false }
  await using opened = await openCapture({ env, isRoot: true }, order, signal)
  const output = join(folder, `${bytes}.img.zst`)
  const seen: { readonly bytes_written: number; readonly total_bytes: number | null }[] = []
  const captured = await runCapture(opened, toFile(output, env), {
    level: 3,
    signal,
    onProgress: (progress) => void seen.push(progress),
  })
  return { path, output, captured, seen, used: opened.ranges.totalBytes }
}

test('zeros that are hashed count as progress', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-thin-'))
  const bytes = 2 * GIB
  const { path, captured, seen, used } = await captureThin(bytes, folder.path)
  assert.ok(used < 4 * MIB, String(used))
  assert.equal([...new Set(seen.map((one) => one.total_bytes))], [bytes])
  assert.ok(seen.every((one) => one.bytes_written <= bytes))
  const digest = (await run`sha256sum ${path}`).stdout.slice(0, 64)
  assert.is(captured.imageSha256, digest)
})

test('above 256 GiB of free space the digest is not computed, and the image is verified by its frames', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-thin-'))
  const bytes = 257 * GIB
  const { output, captured, seen, used } = await captureThin(bytes, folder.path)
  assert.is(captured.imageSha256, null)
  assert.equal([...new Set(seen.map((one) => one.total_bytes))], [used])
  const stored = await readFile(output)
  assert.is(captured.sha256, createHash('sha256').update(stored).digest('hex'))
  const index = stored.subarray(stored.indexOf('flashidx'))
  assert.ok(index.subarray(32, 64).equals(Buffer.alloc(32)))
  const inspected = await runFlasher(['inspect', 'image', output, '--json'])
  const { frames } = JSON.parse(inspected.stdout).image
  assert.equal(
    [frames.image_sha256, frames.index_sha256, frames.count],
    [undefined, captured.indexSha256, captured.frames],
  )
  await using target = await createLoop({ sizeBytes: bytes })
  const argv = ['flash', '--image', output, '--target', target.device, '--yes', '--json']
  const flashed = await runFlasher([...argv, '--index-sha256', captured.indexSha256, '--delta'])
  assert.is(flashed.code, 0, flashed.stderr)
  const { stdout: cut } = await run`head -c 440 ${target.device} | base64 -w0`
  assert.is(cut, Buffer.concat([makeNoise(400, 3), Buffer.alloc(40)]).toString('base64'))
})

test.run()
