/** The qcow2 reader against QEMU: the same bytes for every kind of image, and no byte read in vain. */
import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openFileSource } from '#engine/image/sources/file-source.ts'
import { openQcow2 } from '#engine/image/qcow2-blocks.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  collectBlocks,
  makeContent,
  openWorkshop,
  sourceOf,
} from '#test/support/disk/qcow2-image.ts'

const MIB = 2 ** 20
/** No multiple of any cluster size. */
const CONTENT = makeContent(8 * MIB + 3 * 512)
const ASKED = [
  { isFar: false, intoBytes: 4 * MIB },
  { isFar: false, intoBytes: 100_000 },
  { isFar: true, intoBytes: 3 * MIB + 512 },
] as const

/** Opens, compares with what is expected for buffers of several sizes, near and far. */
async function checkSame(image: Buffer, expected: Buffer, about: string) {
  for (const { isFar, intoBytes } of ASKED) {
    await using blocks = await openQcow2(sourceOf(image, { isFar }))
    const found = await collectBlocks(blocks, intoBytes)
    const where = `${about}, ${isFar ? 'far' : 'near'}, by ${intoBytes}`
    assert.is(blocks.virtualBytes, expected.length, where)
    assert.is(found.length, expected.length, where)
    assert.ok(found.equals(expected), where)
  }
}

const test = suite('openQcow2')

const KINDS: readonly (readonly [name: string, ...flags: readonly string[]])[] = [
  ['version 2', '-o', 'compat=0.10'],
  ['version 3', '-o', 'compat=1.1'],
  ['lazy refcounts', '-o', 'lazy_refcounts=on,refcount_bits=1'],
  ['clusters of 512', '-o', 'cluster_size=512'],
  ['clusters of 4096', '-o', 'cluster_size=4096'],
  ['clusters of 2 MiB', '-o', 'cluster_size=2M'],
  ['extended L2', '-o', 'extended_l2=on'],
  ['extended L2 of 16 KiB', '-o', 'extended_l2=on,cluster_size=16k'],
  ['preallocated metadata', '-o', 'preallocation=metadata'],
  ['preallocated holes', '-o', 'preallocation=falloc'],
  ['preallocated', '-o', 'preallocation=full'],
  ['all zeros written', '-S', '0'],
  ['zlib', '-c'],
  ['zlib, out of order', '-c', '-W', '-m', '8', '-o', 'cluster_size=8k'],
  ['zlib, version 2', '-c', '-o', 'compat=0.10'],
  ['zlib, clusters of 512', '-c', '-o', 'cluster_size=512'],
  ['zlib, clusters of 2 MiB', '-c', '-o', 'cluster_size=2M'],
  ['zlib, extended L2', '-c', '-o', 'extended_l2=on'],
  ['zstd', '-c', '-o', 'compression_type=zstd'],
  ['zstd, clusters of 2 MiB', '-c', '-o', 'compression_type=zstd,cluster_size=2M'],
  ['zstd, clusters of 4096', '-c', '-o', 'compression_type=zstd,cluster_size=4k'],
]
for (const [name, ...flags] of KINDS) {
  test(`gives the bytes of an image: ${name}`, async () => {
    await using shop = await openWorkshop()
    await checkSame(await readFile(await shop.convert(CONTENT, flags)), CONTENT, name)
  })
}

/** Writes, zeroes and discards all over 8 MiB, as a running system would. */
const SCATTER = [
  'write -P 1 0 1M',
  'write -P 2 3M 100k',
  'write -P 3 2M 512',
  'write -P 4 6000k 1500k',
  'write -z 200k 300k',
  'write -z -u 6100k 64k',
  'discard 7M 128k',
  'write -P 5 250k 2k',
  'write -P 6 512k 64k',
  'write -P 7 8191k 1k',
]
for (const options of ['cluster_size=64k', 'cluster_size=4k', 'extended_l2=on', 'compat=0.10']) {
  test(`gives the bytes of an image that was written to: ${options}`, async () => {
    await using shop = await openWorkshop()
    const path = await shop.create('8M', ['-o', options])
    await shop.io(path, ...SCATTER)
    await checkSame(await readFile(path), await shop.contentOf(path), options)
  })
}
test('mixes compressed and plain clusters', async () => {
  await using shop = await openWorkshop()
  const path = await shop.convert(CONTENT, ['-c'])
  await shop.io(path, ...SCATTER)
  await checkSame(await readFile(path), await shop.contentOf(path), 'mixed')
})
test('gives the active state of an image with snapshots', async () => {
  await using shop = await openWorkshop()
  const path = await shop.convert(CONTENT)
  await shop.img('snapshot', '-c', 'before', path)
  await shop.io(path, ...SCATTER)
  await shop.img('snapshot', '-c', 'between', path)
  await shop.io(path, 'write -P 9 4M 300k')
  await checkSame(await readFile(path), await shop.contentOf(path), 'snapshots')
})
test('gives a size that is no multiple of the sector', async () => {
  await using shop = await openWorkshop()
  for (const flags of [[], ['-c'], ['-o', 'cluster_size=512'], ['-o', 'extended_l2=on']]) {
    const image = await readFile(await shop.convert(CONTENT, flags))
    for (const bytes of [1, 511, 513, 65_537, CONTENT.length - 1]) {
      image.writeBigUInt64BE(BigInt(bytes), 24)
      await checkSame(image, CONTENT.subarray(0, bytes), `${flags.join(' ')} ${bytes}`)
    }
  }
})
test('gives nothing of an empty disk, and zeros of one never written', async () => {
  await using shop = await openWorkshop()
  for (const size of ['0', '512', '3M']) {
    const path = await shop.create(size)
    await checkSame(await readFile(path), await shop.contentOf(path), size)
  }
})

interface Counted {
  readonly source: Source
  readonly reads: readonly { readonly offset: number; readonly bytes: number }[]
  most(): number
}

/** Counts reads, and how many of them were under way at once. */
function countReads(source: Source): Counted {
  const { readAt } = source
  if (readAt === null) throw new Error('no random access')
  const reads: { offset: number; bytes: number }[] = []
  let underWay = 0
  let most = 0
  return {
    reads,
    most: () => most,
    source: {
      ...source,
      async readAt(into, offset) {
        reads.push({ offset, bytes: into.length })
        underWay += 1
        most = Math.max(most, underWay)
        await new Promise(setImmediate)
        const bytes = await readAt(into, offset)
        underWay -= 1
        return bytes
      },
    },
  }
}

test('reads no more of 8 TiB of nothing than its tables', async () => {
  await using shop = await openWorkshop()
  const path = await shop.create('8T')
  await shop.io(path, 'write -P 1 5T 64k', `write -P 2 ${8 * 2 ** 40 - 512} 512`)
  await using file = await openFileSource(path)
  const { source, reads } = countReads(file)
  await using blocks = await openQcow2(source)
  assert.is(blocks.virtualBytes, 8 * 2 ** 40)
  const into = Buffer.alloc(4 * MIB)
  const pieces: unknown[] = []
  for (let piece = await blocks.next(into); piece !== null; piece = await blocks.next(into)) {
    pieces.push(piece)
  }
  const cluster = 65_536
  assert.equal(pieces, [
    { kind: 'zeros', bytes: 5 * 2 ** 40 },
    { kind: 'data', bytes: cluster },
    { kind: 'zeros', bytes: 3 * 2 ** 40 - 2 * cluster },
    { kind: 'data', bytes: cluster },
  ])
  // The header, the L1 table, the refcount table, two L2 tables and two clusters.
  assert.is(reads.length, 7)
  assert.is(
    reads.reduce((sum, { bytes }) => sum + bytes, 0),
    112 + 16_384 * 8 + 5 * cluster,
  )
})
test('reads neighbouring clusters at once, straight into the buffer', async () => {
  await using shop = await openWorkshop()
  const plain = makeContent(3 * MIB).fill(1)
  const { source, reads } = countReads(sourceOf(await readFile(await shop.convert(plain))))
  await using blocks = await openQcow2(source)
  const into = Buffer.alloc(4 * MIB)
  assert.equal(await blocks.next(into), { kind: 'data', bytes: 3 * MIB })
  assert.is(await blocks.next(into), null)
  assert.equal(reads.at(-1)?.bytes, 3 * MIB)
  assert.is(reads.length, 5)
})
test('asks a server for several parts at once, but not for many', async () => {
  await using shop = await openWorkshop()
  const path = await shop.create('64M')
  const starts = Array.from({ length: 60 }, (_, turn) => (turn * 37) % 60)
  await shop.io(path, ...starts.map((at) => `write -P ${at + 1} ${at}M 128k`))
  const { source, reads, most } = countReads(sourceOf(await readFile(path), { isFar: true }))
  await using blocks = await openQcow2(source)
  const found = await collectBlocks(blocks, 4 * MIB)
  assert.ok(found.equals(await shop.contentOf(path)))
  assert.ok(most() > 2 && most() <= 8, `${most()} at once`)
  assert.is(reads.length, 4 + 60)
})
test('is written from a web server by its ranges', async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.convert(CONTENT, ['-c']))
  await using server = await startHostileServer((request, response) => {
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    const isPart = from !== undefined
    const start = Number(from ?? 0)
    const body = image.subarray(start, to ? Number(to) + 1 : undefined)
    response.writeHead(isPart ? 206 : 200, {
      etag: '"1"',
      'accept-ranges': 'bytes',
      'content-length': body.length,
      ...(isPart
        ? { 'content-range': `bytes ${start}-${start + body.length - 1}/${image.length}` }
        : {}),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  })
  await using source = await createSources({ env: {} }).open(`${server.origin}/disk.qcow2`)
  await using blocks = await openQcow2(source)
  assert.ok((await collectBlocks(blocks, 4 * MIB)).equals(CONTENT))
})
test.run()
