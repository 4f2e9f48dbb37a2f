/** `flasher flash` of what is no image, of what nobody can name, and of images that were cut off. */
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createFlasher } from '#engine/flash/flasher.ts'
import { type FlashOrder, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { EXIT } from '#flasher/commands/rules/exit-codes.ts'
import { makeBytes } from '#test/support/collect.ts'
import { makeTrailer, pipeThrough, seekable } from '#test/support/disk/compressed.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { assertBlank, makeStale, readDisk } from '#test/support/disk/writer.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'
import { driveMachine, entryOf, openServer, runOf } from '#test/support/terminal/remote-fixture.ts'

const test = suite('flash command: what is no image')
const MIB = 1024 * 1024
const IMAGE = makeDiskImage(2 * MIB)
const PAGE = Buffer.from(`<!DOCTYPE html><html>${'<p>Sign in</p>\n'.repeat(200_000)}</html>`)

async function createFixture(files: Readonly<Record<string, Buffer>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-content-'))
  const loop = await createLoop()
  await using disk = await open(loop.device, 'r+')
  await disk.write(Buffer.alloc(MIB, 0xa5), 0, MIB, 0)
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes)
  const target = ['--target', loop.device, '--progress', 'none', '--json']
  const readTarget = async (length: number) => {
    await using file = await open(loop.device, 'r')
    const into = Buffer.alloc(length)
    await file.read(into, 0, length, 0)
    return into
  }
  return {
    flash: async (image: string, ...more: readonly string[]) => {
      const path = image.includes('://') ? image : join(folder, image)
      const argv = ['flash', '--image', path, '--yes', ...target, ...more]
      const { code, stdout, stderr } = await runFlasher(argv)
      return { code, document: Object(JSON.parse(stdout)), stderr }
    },
    device: loop.device,
    readDisk: readTarget,
    isUntouched: async () => (await readTarget(MIB)).equals(Buffer.alloc(MIB, 0xa5)),
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    },
  }
}

const html = { 'content-type': 'text/html' }
const REMOTE: Readonly<
  Record<string, readonly [Buffer, Readonly<Record<string, string>>, RegExp]>
> = {
  'page.img': [PAGE, html, /web page \(Content-Type: text\/html\)/],
  'untyped.img': [PAGE, {}, /holds an HTML page/],
  'short.img': [PAGE.subarray(0, 60), {}, /holds an HTML page/],
  'typed.img': [IMAGE, html, /web page/],
  'empty.img': [Buffer.alloc(0), {}, /is empty/],
  'encoded.img': [gzipSync(IMAGE), { 'content-encoding': 'gzip' }, /the server sent it encoded/],
  'coded.img': [
    brotliCompressSync(IMAGE),
    { 'content-encoding': 'br' },
    /the server sent it encoded \(Content-Encoding: br\)/,
  ],
  'twice.img.gz': [
    gzipSync(gzipSync(IMAGE)),
    { 'content-encoding': 'gzip' },
    /the server sent it encoded/,
  ],
}

for (const chunked of [false, true]) {
  test(`a server that sends something else, ${chunked ? 'in chunks' : 'of known length'}`, async () => {
    await using fixture = await createFixture()
    await using server = await startHostileServer((request, response) => {
      const [body = Buffer.alloc(0), headers = {}] = REMOTE[(request.url ?? '').slice(1)] ?? []
      response.writeHead(200, chunked ? headers : { ...headers, 'content-length': body.length })
      response.end(request.method === 'HEAD' ? undefined : body)
    })
    for (const [name, [, , words]] of Object.entries(REMOTE)) {
      const { code, document } = await fixture.flash(`${server.origin}/${name}`)
      assert.is(code, 1, name)
      assert.match(document.error.message, words, name)
      assert.not.match(document.error.message, /extract it first/)
      assert.ok(await fixture.isUntouched(), name)
    }
  })
}

test('a local page is refused with the way round it, which writes it', async () => {
  await using fixture = await createFixture({
    'page.img': PAGE,
    'sums.img': Buffer.from('ab  c\n'),
  })
  for (const name of ['page.img', 'sums.img']) {
    const { code, document } = await fixture.flash(name)
    assert.is(code, 1)
    assert.match(document.error.message, /is not a disk image: it holds/)
    assert.match(document.error.hint, /--format/)
  }
  assert.ok(await fixture.isUntouched())
  const { code, stderr } = await fixture.flash('page.img', '--format', 'img')
  assert.is(code, 0, stderr)
  assert.ok((await fixture.readDisk(1000)).equals(PAGE.subarray(0, 1000)))
})

test('a page that is piped in is refused although the format has to be given', async () => {
  await using fixture = await createFixture()
  const argv = ['flash', '--image', '-', '--format', 'img', '--target', fixture.device, '--yes']
  const { child, ended } = startFlasher(argv)
  child.stdin?.end(PAGE)
  const { code, stderr } = await ended
  assert.is(code, 1)
  assert.match(stderr, /holds an HTML page/)
  assert.ok(await fixture.isUntouched())
})

test('what is nobody\u2019s is written, with a note', async () => {
  await using fixture = await createFixture({ 'noise.img': makeBytes(MIB), 'd.img': IMAGE })
  const { code, document } = await fixture.flash('noise.img')
  assert.is(code, 0)
  assert.match(document.plan.notes.join(), /not begin with a known partition table or file system/)
  assert.equal((await fixture.flash('d.img')).document.plan.notes, [])
})

const half = IMAGE.subarray(0, MIB + MIB / 2)

test('an image that is cut off by its own table is written with a warning', async () => {
  await using fixture = await createFixture({ 'half.img': half, 'half.img.gz': gzipSync(half) })
  await using server = await startHostileServer((request, response) => {
    response.writeHead(200)
    response.end(request.method === 'HEAD' ? undefined : half)
  })
  const words = /partition 1 ends beyond the end of the image \(\d+ bytes are missing\)/
  for (const image of ['half.img', 'half.img.gz', `${server.origin}/half.img`]) {
    const { code, document, stderr } = await fixture.flash(image)
    assert.is(code, 0, stderr)
    assert.match(document.result.warnings.join(), words, image)
  }
  assert.match((await fixture.flash('half.img')).document.plan.notes.join(), words)
})

test('signed metadata behind gzip data is ignored with a note', async () => {
  const metadata = Buffer.from('\0\0\0\0\0\0\0\0{"metadata_version": "1.1"}\n')
  const text = makeTrailer(Buffer.from('untrusted comment: x\n'))
  const files = {
    'two.img.gz': Buffer.concat([gzipSync(IMAGE), makeTrailer(metadata), text]),
    'text.img.gz': Buffer.concat([gzipSync(IMAGE), text]),
    'bad.img.gz': Buffer.concat([gzipSync(IMAGE), Buffer.from('garbage')]),
  }
  await using fixture = await createFixture(files)
  for (const name of ['two.img.gz', 'text.img.gz']) {
    const { code, document, stderr } = await fixture.flash(name)
    assert.is(code, 0, stderr)
    assert.ok((await fixture.readDisk(IMAGE.length)).equals(IMAGE))
    assert.match(document.plan.notes.join(), /bytes of metadata after the gzip data are ignored/)
  }
  assert.is((await fixture.flash('bad.img.gz')).code, 1)
})

test('a disk image is taken under any name; all else names --format', async () => {
  const xz = pipeThrough(['xz', '-c'], IMAGE)
  const iso = Buffer.alloc(64 * 1024)
  iso.write('CD001', 0x8001)
  const files = { 'a.raw': IMAGE, 'a.bin': IMAGE, 'a.iso': iso, 'a.raw.xz': xz, wic: IMAGE }
  const others = { 'n.raw': makeBytes(MIB), 'n.gz': gzipSync(makeBytes(MIB)), 'n.txt': PAGE }
  await using fixture = await createFixture({ ...files, ...others })
  await using server = await startHostileServer((request, response) => {
    response.writeHead(200)
    response.end(request.method === 'HEAD' ? undefined : IMAGE)
  })
  for (const image of [...Object.keys(files), `${server.origin}/download?id=7`]) {
    assert.is((await fixture.flash(image)).code, 0, image)
  }
  for (const image of Object.keys(others)) {
    const { code, document } = await fixture.flash(image)
    assert.is(code, 1, image)
    assert.match(document.error.message, /image format not recognised: .*--format/)
  }
})

test('a frame that is longer than its table says is said to be so', async () => {
  const file = seekable([1, 2, 3, 4].map((seed) => makeBytes(MIB, seed)))
  // The third of four entries: its length once unpacked.
  file.writeUInt32LE(MIB / 2, file.length - 9 - 2 * 8 + 4)
  await using fixture = await createFixture({ 'a.img.zst': file })
  const { code, document } = await fixture.flash('a.img.zst')
  assert.is(code, 1)
  assert.match(document.error.message, /does not hold as much as its tables say/)
})

for (const tool of ['bash', 'lsblk']) {
  test(`${tool} is named, with its package and exit code`, async () => {
    // In a namespace of its own, where that file cannot be run.
    const hide = `for at in /bin/${tool} /usr/bin/${tool}; do mount --bind /dev/null "$at" 2>/dev/null; done; exec "$@"`
    const prefix = ['unshare', '--mount', 'sh', '-c', hide, 'sh']
    const { code, stderr } = await runFlasher(['list', 'disks'], { prefix })
    assert.is(code, EXIT['tool-missing'], stderr)
    assert.match(stderr, new RegExp(`${tool} is not installed`))
    assert.match(stderr, /apt-get install/)
  })
}

const LARGE_IMAGE = makeDiskImage(6 * MIB)
const HALF = LARGE_IMAGE.subarray(0, 3 * MIB)
const flasher = createFlasher({ env: process.env, retryMs: 1 })
const { signal } = new AbortController()
const MISSED = new RegExp(`it has ${HALF.length} bytes, the catalog says ${LARGE_IMAGE.length}`)

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
  const order = orderOf(`${server.origin}/known.img`, loop.device, LARGE_IMAGE.length)
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
  const order = orderOf(`${server.origin}/chunked.img`, loop.device, LARGE_IMAGE.length)
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
    const entry = entryOf(`${files.origin}/${name}`, { sizeBytes: LARGE_IMAGE.length })
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
