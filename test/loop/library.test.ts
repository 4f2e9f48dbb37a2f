/** The library as a program uses it: list, inspect, plan and flash a loop device. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listDisks } from '#library/disks.ts'
import { executePlan, FlashError, makePlan, type FlashProgress } from '#library/flash.ts'
import {
  defaultImageRoot,
  detectFormat,
  ImageError,
  inspectImage,
  listImages,
} from '#library/images.ts'
import { createLoop } from '#test/support/disk/loop.ts'

const test = suite('library')
const isRoot = process.geteuid?.() === 0
const context: { folder: string } = { folder: '' }

test.before(async () => {
  context.folder = await mkdtemp(join(tmpdir(), 'flasher-library-'))
})
test.after(() => rm(context.folder, { recursive: true }))

test('an image that is not there is an error that programs can tell', async () => {
  const path = join(context.folder, 'missing.img')
  const error = await inspectImage(path).catch((thrown: unknown) => thrown)
  assert.instance(error, ImageError)
  assert.is(error instanceof ImageError && error.code, 'input-missing')
  assert.match(String(error), /^ImageError: .*missing\.img/)
})

test('lists disks and images, and tells what an image is', async () => {
  const path = join(context.folder, 'one.img')
  await writeFile(path, Buffer.alloc(4096, 7))
  const disks = await listDisks()
  assert.ok(disks.every((disk) => disk.type === 'disk'))
  assert.equal(await listImages(context.folder), [
    { name: 'one.img', path, format: 'img', size_bytes: 4096 },
  ])
  assert.equal((await inspectImage(path)).format, 'img')
  assert.is(detectFormat('UPPER.IMG.ZST'), 'img.zst')
  assert.ok(defaultImageRoot().startsWith('/'))
})

if (isRoot) {
  test('plans, flashes with progress, and says done', async () => {
    const path = join(context.folder, 'two.img')
    const bytes = randomBytes(3 * 1024 * 1024 + 512)
    await writeFile(path, bytes)
    await using loop = await createLoop({ megabytes: 8 })
    const seen: FlashProgress[] = []
    const plan = await makePlan({ image: path, target: loop.device })
    await executePlan(plan, { progress: (event) => seen.push(event) })
    assert.ok((await readFile(loop.backing)).subarray(0, bytes.length).equals(bytes))
    assert.is(seen[0]?.event, 'started')
    assert.equal(
      seen.slice(-3).map(({ event }) => event),
      ['synced', 'partprobed', 'done'],
    )
  })

  test('a cancel is a FlashError, and the disk is left blank', async () => {
    const path = join(context.folder, 'three.img')
    await writeFile(path, randomBytes(4 * 1024 * 1024))
    await using loop = await createLoop({ megabytes: 8 })
    const cancel = new AbortController()
    const plan = await makePlan({ image: path, target: loop.device })
    const failed = await executePlan(plan, {
      cancel: cancel.signal,
      progress: () => cancel.abort(),
    }).catch((thrown: unknown) => thrown)
    assert.instance(failed, FlashError)
    assert.is(failed instanceof FlashError && failed.code, 'cancelled')
    assert.ok((await readFile(loop.backing)).subarray(0, 1024 * 1024).every((byte) => byte === 0))
  })
}

test('what cannot be flashed is a FlashError with every reason', async () => {
  const path = join(context.folder, 'four.img')
  await writeFile(path, Buffer.alloc(4096, 1))
  const failed = await makePlan({ image: path, target: path }).catch((thrown: unknown) => thrown)
  assert.instance(failed, FlashError)
  assert.match(String(failed), 'not a block device')
})

test('a digest beside the image counts, and one in the request counts more', async () => {
  if (!isRoot) return
  const path = join(context.folder, 'five.img')
  await writeFile(path, randomBytes(4096))
  await writeFile(`${path}.sha256`, `${'a'.repeat(64)}  five.img\n`)
  await using loop = await createLoop({ megabytes: 8 })
  const request = { image: path, target: loop.device, format: null }
  assert.is((await makePlan(request)).sha256, 'a'.repeat(64))
  assert.is((await makePlan({ ...request, sha256: 'b'.repeat(64) })).sha256, 'b'.repeat(64))
  const failed = await makePlan(request, { cancel: AbortSignal.abort() }).catch(String)
  assert.is(failed, 'FlashError: cancelled')
})

test.run()
