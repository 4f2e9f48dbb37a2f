/** qcow2 images that must not be written: the unsupported, the damaged, the cut off, the hostile. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { openQcow2 } from '#engine/image/qcow2-blocks.ts'
import { faultOf } from '#test/support/collect.ts'
import { CONTENT, openBytes, readFault } from '#test/support/disk/qcow2-faults.ts'
import {
  collectBlocks,
  makeContent,
  openWorkshop,
  sourceOf,
} from '#test/support/disk/qcow2-image.ts'

const MIB = 2 ** 20
const test = suite('qcow2 images that must not be written')

test('a backing file, a data file, encryption are refused before anything is read', async () => {
  await using shop = await openWorkshop()
  const base = await shop.convert(CONTENT)
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
  const image = await readFile(await shop.convert(CONTENT))
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
    const image = await readFile(await shop.convert(CONTENT, flags))
    for (let bytes = 0; bytes < image.length; bytes += 60_013) {
      const source = sourceOf(image.subarray(0, bytes))
      // Once with a size that tells, once with one that does not.
      for (const sizeBytes of [bytes, null]) {
        await checkCut({ ...source, sizeBytes }, CONTENT)
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
  const image = await readFile(await shop.convert(CONTENT))
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
  const source = sourceOf(await readFile(await shop.convert(CONTENT, ['-c'])), { isFar: true })
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
