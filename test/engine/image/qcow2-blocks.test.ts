/** The qcow2 reader against QEMU: the same bytes for every kind of image, and no byte read in vain. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openQcow2 } from '#engine/image/qcow2-blocks.ts'
import { openFileSource, type Source } from '#engine/image/sources/source.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { faultOf } from '#test/support/collect.ts'
import { CONTENT as FAULT_CONTENT, openBytes, readFault } from '#test/support/disk/qcow2-faults.ts'
import {
  collectBlocks,
  makeContent,
  openWorkshop,
  sourceOf,
} from '#test/support/disk/qcow2-image.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'

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

/** Where QEMU put the tables of an image. */
function placesOf(image: Buffer) {
  const l1 = Number(image.readBigUInt64BE(40))
  const refcounts = Number(image.readBigUInt64BE(48))
  return {
    l1,
    refcounts,
    l2: Number(image.readBigUInt64BE(l1) & 0xffffffffffffffn),
    block: Number(image.readBigUInt64BE(refcounts)),
  }
}

const COPIED = 1n << 63n
const PACKED = 1n << 62n

test("a cluster that lies in the image's own tables is refused", async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.convert(FAULT_CONTENT))
  const { l1, l2, refcounts, block } = placesOf(image)
  const rows: readonly (readonly [what: string, entry: bigint])[] = [
    ['the L1 table', COPIED | BigInt(l1)],
    ['the L2 table itself', COPIED | BigInt(l2)],
    ['the refcount table', COPIED | BigInt(refcounts)],
    ['a refcount block', COPIED | BigInt(block)],
    ['compressed, the header', PACKED | 104n],
    ['compressed, the L2 table itself', PACKED | BigInt(l2 + 700)],
    ['compressed, a refcount block', PACKED | BigInt(block + 65_000)],
  ]
  for (const [what, entry] of rows) {
    const broken = Buffer.from(image)
    broken.writeBigUInt64BE(entry, l2 + 5 * 8)
    for (const isFar of [false, true]) {
      const fault = await readFault(broken, isFar)
      assert.is(fault.code, 'image-broken', what)
      assert.match(fault.message, /guest byte 327680 points into the image's own tables/, what)
    }
  }
})
test("tables that lie in the image's other tables are known at once", async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.convert(FAULT_CONTENT))
  const { l1, refcounts, block } = placesOf(image)
  const inTables = /guest byte 0 points into the image's own tables/
  const inCounts = /its reference counts lie in its other tables/
  const rows: readonly (readonly [at: number, value: bigint, words: RegExp])[] = [
    [l1, BigInt(refcounts), inTables],
    [l1, BigInt(block), inTables],
    [refcounts, BigInt(l1), inCounts],
    [refcounts, BigInt(refcounts), inCounts],
    [48, BigInt(l1), /the refcount table lies in the L1 table/],
  ]
  for (const [at, value, words] of rows) {
    const broken = Buffer.from(image)
    broken.writeBigUInt64BE(value, at)
    const fault = await faultOf(() => openBytes(broken))
    assert.match(fault.message, words)
  }
})

test('a backing file, a data file, encryption are refused before anything is read', async () => {
  await using shop = await openWorkshop()
  const base = await shop.convert(FAULT_CONTENT)
  const secret = ['--object', 'secret,id=key,data=abc', '-o']
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [['-b', base, '-F', 'qcow2'], /backing file; flatten it first: qemu-img convert/],
    [['-o', `data_file=${join(shop.folder, 'data.raw')}`], /another file; flatten it first/],
    [[...secret, 'encrypt.format=aes,encrypt.key-secret=key'], /encrypted \(AES\)/],
  ]
  for (const [flags, words] of rows) {
    const fault = await faultOf(async () =>
      openBytes(await readFile(await shop.create('1M', flags))),
    )
    assert.is(fault.code, 'input-invalid')
    assert.match(fault.message, words)
  }
})
test('the corrupt mark and unknown features are refused', async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.create('1M'))
  for (const [mark, words] of [
    [2, /marked as corrupt; repair it first/],
    [32, /incompatible feature bits 5\)/],
  ] as const) {
    image.writeUInt8(mark, 79)
    const fault = await faultOf(() => openBytes(image))
    assert.is(fault.code, 'input-invalid')
    assert.match(fault.message, words)
  }
})
test('a source without random access is refused with a hint', async () => {
  await using shop = await openWorkshop()
  const source = sourceOf(await readFile(await shop.create('1M')))
  const fault = await faultOf(() => openQcow2({ ...source, readAt: null }))
  assert.is(fault.code, 'input-invalid')
  assert.is(
    fault.hint,
    'qcow2 needs a file or a server that supports byte ranges; download it first.',
  )
})
test('a broken L1 entry is known at once, a broken L2 entry at its guest offset', async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.convert(FAULT_CONTENT))
  const l1 = Number(image.readBigUInt64BE(40))
  const l2 = Number(image.readBigUInt64BE(l1) & 0xffffffffffffffn)
  const past = BigInt(Math.ceil(image.length / 65_536) * 65_536)
  const brokenL1 = Buffer.from(image)
  brokenL1.writeBigUInt64BE(past, l1)
  const atOnce = await faultOf(() => openBytes(brokenL1))
  assert.is(atOnce.code, 'image-broken')
  const rows: readonly (readonly [bigint, RegExp])[] = [
    [past, /guest byte 327680 points past the end of the file/],
    [BigInt(l1), /guest byte 327680 points into the image's own tables/],
    [66_048n, /guest byte 327680 points between two clusters/],
    [2n, /guest byte 327680 has bits set that mean nothing/],
    [(1n << 62n) | past, /guest byte 327680 points past the end/],
  ]
  for (const [entry, words] of rows) {
    const broken = Buffer.from(image)
    broken.writeBigUInt64BE(entry, l2 + 5 * 8)
    for (const isFar of [false, true]) {
      const fault = await readFault(broken, isFar)
      assert.is(fault.code, 'image-broken')
      assert.match(fault.message, words)
    }
  }
})

test('a damaged compressed cluster is a fault that names its guest offset', async () => {
  await using shop = await openWorkshop()
  const text = Buffer.alloc(MIB, 'the same text again and again\n')
  for (const flags of [['-c'], ['-c', '-o', 'compression_type=zstd']]) {
    const image = await readFile(await shop.convert(text, flags))
    const l1 = Number(image.readBigUInt64BE(40))
    const l2 = Number(image.readBigUInt64BE(l1) & 0xffffffffffffffn)
    const at = Number(image.readBigUInt64BE(l2 + 3 * 8) & 0x3fffffffffffffn)
    image.fill(0xff, at, at + 40)
    for (const isFar of [false, true]) {
      const fault = await readFault(image, isFar)
      assert.is(fault.code, 'image-broken')
      assert.match(fault.message, /compressed cluster of guest byte 196608/)
    }
  }
})
test('a file that is cut off anywhere is a fault, or what is missing was not needed', async () => {
  await using shop = await openWorkshop()
  for (const flags of [[], ['-c'], ['-c', '-o', 'compression_type=zstd']]) {
    const image = await readFile(await shop.convert(FAULT_CONTENT, flags))
    for (let bytes = 0; bytes < image.length; bytes += 60_013) {
      const source = sourceOf(image.subarray(0, bytes))
      // Once with a size that tells, once with one that does not.
      for (const sizeBytes of [bytes, null]) {
        await checkCut({ ...source, sizeBytes }, FAULT_CONTENT)
      }
    }
    const last = await readFault(image.subarray(0, image.length - 70_000))
    assert.is(last.code, 'image-broken')
  }
})

async function checkCut(source: Parameters<typeof openQcow2>[0], content: Buffer) {
  try {
    await using blocks = await openQcow2(source)
    assert.ok((await collectBlocks(blocks, MIB)).equals(content))
  } catch (thrown) {
    if (!isDocumented(thrown)) throw thrown
  }
}

test("the source's own fault comes through, and comes again", async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.convert(FAULT_CONTENT))
  for (const isFar of [false, true]) {
    const source = sourceOf(image, { isFar })
    let reads = 0
    await using blocks = await openQcow2({
      ...source,
      async readAt(into, offset) {
        reads += 1
        if (reads > 4) throw new Fault('source-broken', 'the cable is out')
        return (await source.readAt?.(into, offset)) ?? 0
      },
    })
    for (const _ of [1, 2]) {
      const fault = await faultOf(() => collectBlocks(blocks, MIB))
      assert.is(fault.message, 'the cable is out')
    }
  }
})
test('closing early waits for the reads that are under way', async () => {
  await using shop = await openWorkshop()
  const source = sourceOf(await readFile(await shop.convert(FAULT_CONTENT, ['-c'])), {
    isFar: true,
  })
  let underWay = 0
  const blocks = await openQcow2({
    ...source,
    async readAt(into, offset) {
      underWay += 1
      await new Promise(setImmediate)
      const bytes = (await source.readAt?.(into, offset)) ?? 0
      underWay -= 1
      return bytes
    },
  })
  await blocks.next(Buffer.alloc(65_536))
  await blocks[Symbol.asyncDispose]()
  assert.is(underWay, 0)
})

const isDocumented = (thrown: unknown) =>
  thrown instanceof Fault && ['image-broken', 'input-invalid'].includes(thrown.code)

/** Reads so far as a hostile image may make us; all of it must be within bounds. */
async function readSome(image: Buffer, isFar: boolean) {
  const into = Buffer.alloc(MIB)
  await using blocks = await openQcow2(sourceOf(image, { isFar }))
  let total = 0
  for (let turn = 0; turn < 24; turn += 1) {
    const piece = await blocks.next(into)
    if (piece === null) {
      assert.is(total, blocks.virtualBytes)
      return
    }
    assert.ok(piece.bytes > 0 && (piece.kind === 'zeros' || piece.bytes <= into.length))
    total += piece.bytes
    assert.ok(total <= blocks.virtualBytes)
  }
}

test('images with any bytes changed end in order or in a documented fault', async () => {
  await using shop = await openWorkshop()
  const content = makeContent(400_000)
  const kinds = [
    ['-o', 'cluster_size=4k'],
    ['-c', '-o', 'cluster_size=4k'],
    ['-c', '-o', 'compression_type=zstd,cluster_size=16k,extended_l2=on'],
    ['-o', 'cluster_size=16k,extended_l2=on'],
  ]
  const images = await Promise.all(
    kinds.map(async (flags) => readFile(await shop.convert(content, flags))),
  )
  const change = fc.tuple(
    fc.oneof(
      fc.nat(111).map((at) => ({ table: 'header', at }) as const),
      fc.nat(64).map((at) => ({ table: 'l1', at }) as const),
      fc.nat(1600).map((at) => ({ table: 'l2', at }) as const),
      fc.nat(1_000_000).map((at) => ({ table: 'header', at }) as const),
    ),
    fc.nat(255),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...images),
      fc.array(change, { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (sound, changes, isFar) => {
        const image = Buffer.from(sound)
        const l1 = Number(image.readBigUInt64BE(40))
        const starts = {
          header: 0,
          l1,
          l2: Number(image.readBigUInt64BE(l1) & 0xffffffffffffffn),
        }
        for (const [{ table, at }, value] of changes) {
          image.writeUInt8(value, (starts[table] + at) % image.length)
        }
        try {
          await readSome(image, isFar)
        } catch (thrown) {
          if (!isDocumented(thrown)) throw thrown
        }
      },
    ),
    { numRuns: 200 },
  )
})

test.run()
