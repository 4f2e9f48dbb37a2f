import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempDisposable, open, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFrameMap } from '#engine/image/zstd-decoder.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { packImage, writeWhole } from '#engine/pack/packer.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { faultOf } from '#test/support/collect.ts'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'

const test = suite('pack')
const MIB = 1 << 20
/** Ends in the middle of a frame, with frames of zeros before. */
const IMAGE = Buffer.concat([
  makeDiskImage(8 * MIB),
  Buffer.alloc(12 * MIB),
  makeNoise(5 * MIB + 512, 3),
])
const DIGEST = createHash('sha256').update(IMAGE).digest('hex')

const order = { format: null, sha256: null, level: 3 }
const quiet = { signal: new AbortController().signal, onProgress: () => undefined }
const pack = (image: string, output: string, more: { readonly sha256?: string } = {}) =>
  packImage({ env: process.env }, { ...order, image, output, ...more }, quiet)

function makeQcow2(path: string): Buffer {
  const raw = `${path}.raw.img`
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, path])
  return Buffer.alloc(0)
}

const FORMATS: Readonly<Record<string, () => Buffer>> = {
  img: () => IMAGE,
  'img.zst': () => pipeThrough(['zstd', '-qc1'], IMAGE),
  'img.gz': () => pipeThrough(['gzip', '-c1'], IMAGE),
  'img.xz': () => pipeThrough(['xz', '-c1'], IMAGE),
  'img.bz2': () => pipeThrough(['bzip2', '-c1'], IMAGE),
}

test('every format: the same image, its frames where the index says, for every zstd to read', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-pack-'))
  const qcow2 = join(folder.path, 'a.qcow2')
  await writeFile(`${qcow2}.raw.img`, IMAGE)
  makeQcow2(qcow2)
  for (const [name, make] of Object.entries(FORMATS)) {
    await writeFile(join(folder.path, `a.${name}`), make())
  }
  for (const name of [...Object.keys(FORMATS), 'qcow2']) {
    const output = join(folder.path, `${name}.packed.img.zst`)
    const packed = await pack(join(folder.path, `a.${name}`), output)
    assert.equal([packed.frames, packed.zeroFrames], [7, 3], name)
    assert.is(packed.imageSha256, DIGEST)
    const file = await readFile(output)
    assert.is(packed.sha256, createHash('sha256').update(file).digest('hex'))
    assert.ok(pipeThrough(['zstd', '-dc'], file).equals(IMAGE), name)
    await checkFrames(output, file, packed.indexSha256)
  }
})

/** Each frame's place and digest are as the index has them. */
async function checkFrames(path: string, file: Buffer, indexSha256: string) {
  await using source = await openFileSource(path)
  const { readAt } = source
  assert.ok(readAt)
  const map = await readFrameMap({ ...source, readAt })
  assert.ok(map)
  assert.is(map.indexSha256, indexSha256)
  for (let index = 0; index < map.count; index += 1) {
    const { storedAt, storedBytes, sha256 } = map.at(index)
    const content = pipeThrough(['zstd', '-dc'], file.subarray(storedAt, storedAt + storedBytes))
    assert.is(createHash('sha256').update(content).digest('hex'), sha256)
  }
}

test('at level 3 it is at most 5 % larger than what zstd makes: programs, texts and noise', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-pack-'))
  const program = await readStart(process.execPath, 24 * MIB)
  const texts = await readTexts(fileURLToPath(new URL('../../../docs/', import.meta.url)))
  // What begins like text is no image.
  const start = IMAGE.subarray(0, 512)
  for (const [name, rest] of Object.entries({ program, texts, noise: makeNoise(8 * MIB, 7) })) {
    const content = Buffer.concat([start, rest])
    const image = join(folder.path, `${name}.img`)
    await writeFile(image, content)
    const { storedBytes } = await pack(image, `${image}.zst`)
    const zstd = pipeThrough(['zstd', '-qc3'], content).length
    assert.ok(storedBytes <= 1.05 * zstd, `${name}: ${storedBytes} bytes, by zstd ${zstd}`)
  }
})

async function readStart(path: string, bytes: number) {
  await using file = await open(path)
  return (await file.read(Buffer.alloc(bytes), 0, bytes, 0)).buffer
}

async function readTexts(folder: string) {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.md'))
  return Buffer.concat(await Promise.all(names.map((name) => readFile(join(folder, name)))))
}

test('an image that is damaged or another one leaves nothing behind', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-pack-'))
  const image = join(folder.path, 'a.img.zst')
  await writeFile(image, pipeThrough(['zstd', '-qc1'], IMAGE).subarray(0, -9))
  const output = join(folder.path, 'b.img.zst')
  assert.is((await faultOf(() => pack(image, output))).code, 'plan-refused')
  await writeFile(image, pipeThrough(['zstd', '-qc1'], IMAGE))
  const other = await faultOf(() => pack(image, output, { sha256: '0'.repeat(64) }))
  assert.is(other.code, 'digest-mismatch')
  assert.equal(await readdir(folder.path), ['a.img.zst'])
  const raw = join(folder.path, 'a.img')
  await writeFile(raw, IMAGE)
  const wrong = await faultOf(() => pack(raw, output, { sha256: '0'.repeat(64) }))
  assert.is(wrong.code, 'digest-mismatch')
  assert.is((await pack(raw, join(folder.path, 'c.img.zst'), { sha256: DIGEST })).frames, 7)
  assert.equal(await readdir(folder.path), ['a.img', 'a.img.zst', 'c.img.zst'])
  await writeFile(output, 'mine')
  assert.is((await faultOf(() => pack(image, output))).code, 'conflict')
  assert.is(await readFile(output, 'utf8'), 'mine')
})

test('more than 4 TiB is refused before anything is written', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-pack-'))
  const [image, output] = [join(folder.path, 'a.img'), join(folder.path, 'a.img.zst')]
  await writeFile(image, makeDiskImage(MIB))
  await truncate(image, 4 * 2 ** 40 + 512)
  const { code, message } = await faultOf(() => pack(image, output))
  assert.equal([code, message], ['too-large', 'the image holds more than 4 TiB'])
  assert.equal(await readdir(folder.path), ['a.img'])
})

test('a file that appears meanwhile stays, and nothing else does', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-whole-'))
  const path = join(folder.path, 'a.img.zst')
  try {
    await writeWhole(path, async (write) => {
      await write(Buffer.from('ours'))
      await writeFile(path, 'theirs')
    })
    assert.unreachable()
  } catch (thrown) {
    assert.ok(thrown instanceof Fault)
    assert.is(thrown.code, 'conflict')
  }
  assert.is(await readFile(path, 'utf8'), 'theirs')
  assert.equal(await readdir(folder.path), ['a.img.zst'])
})

test('a folder that does not exist is named', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-whole-'))
  const missing = join(folder.path, 'nowhere')
  const fault = await faultOf(() => writeWhole(join(missing, 'a.img.zst'), async () => null))
  assert.is(fault.code, 'input-missing')
  assert.is(fault.message, `there is no folder ${missing}`)
})

test('without one the file has its name and all bytes', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-whole-'))
  const path = join(folder.path, 'a.img.zst')
  await writeWhole(path, (write) => write(Buffer.from('ours')))
  assert.is(await readFile(path, 'utf8'), 'ours')
  assert.equal(await readdir(folder.path), ['a.img.zst'])
})

test.run()
