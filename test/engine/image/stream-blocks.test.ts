import { PassThrough, Transform, Writable } from 'node:stream'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { createDecoders } from '#engine/image/formats.ts'
import { release, writeChunks } from '#engine/image/stream-blocks.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createShell } from '#kit/host/shell.ts'
import { collect, createRandom, faultOf, makeBytes } from '#test/support/collect.ts'
import { makeContent } from '#test/support/disk/disk-images.ts'
import { ENCODINGS } from '#test/support/disk/encodings.ts'
import {
  collectBlocks,
  createMemorySource,
  type MemorySourceOptions,
} from '#test/support/disk/memory-source.ts'

const test = suite('decoded streams')
const shell = createShell({ env: process.env })
const decoders = createDecoders({ shell })
/** Where only bzip2 is installed. */
const plainDecoders = createDecoders({
  shell: { ...shell, has: async (tool) => tool !== 'lbzip2' && (await shell.has(tool)) },
})
const IMAGE = makeContent(1_200_001, 5)
const STREAMS = ENCODINGS.filter(({ format }) => format !== 'qcow2')

async function decode(
  stored: Buffer,
  format: ImageFormat,
  options: MemorySourceOptions = {},
  by = decoders,
) {
  const source = createMemorySource(stored, { name: `image.${format}`, ...options })
  return collectBlocks(await by.open(source, format))
}

for (const { name, format, encode } of STREAMS) {
  const stored = encode(IMAGE)
  const ways = format === 'img.bz2' ? [decoders, plainDecoders] : [decoders]

  test(`${name}: is decoded from chunks of any size, whose memory is used again`, async () => {
    for (const by of ways) {
      for (const chunkBytes of [4999, 65_536, stored.length]) {
        const decoded = await decode(stored, format, { chunkBytes }, by)
        assert.ok(decoded.equals(IMAGE), `chunks of ${chunkBytes}`)
      }
    }
  })

  test(`${name}: the fault of a broken source is the one thrown`, async () => {
    const thrown = new Fault('source-broken', 'the server hung up')
    for (const at of [1, Math.floor(stored.length / 2), stored.length - 10]) {
      const options = { breaksAt: { at, thrown } }
      assert.is(await faultOf(() => decode(stored, format, options)), thrown)
    }
  })

  if (format === 'img') continue

  test(`${name}: a cut is found wherever it falls`, async () => {
    const random = createRandom(7)
    const places = Array.from({ length: 3 }, () => Math.ceil(random() * (stored.length - 1)))
    for (const by of ways) {
      for (const at of [...places, 5, stored.length - 1]) {
        if (isWhole(name, stored, at)) continue
        const fault = await faultOf(() => decode(stored.subarray(0, at), format, {}, by))
        assert.is(fault.code, 'image-broken', `cut at ${at}`)
        assert.match(fault.message, `image.${format} is damaged or cut off: `)
      }
    }
  })

  test(`${name}: garbage behind the end is found`, async () => {
    const rows = [makeBytes(9), makeBytes(300_000, 3), Buffer.from('\0garbage'.repeat(100_000))]
    for (const by of ways) {
      for (const [n, garbage] of rows.entries()) {
        const bytes = Buffer.concat([stored, garbage])
        for (const chunkBytes of n === 0 ? [60_001, stored.length] : [60_001]) {
          const fault = await faultOf(() => decode(bytes, format, { chunkBytes }, by))
          assert.is(fault.code, 'image-broken', `garbage ${n}, chunks of ${chunkBytes}`)
        }
      }
    }
  })

  test(`${name}: a flipped bit never passes for the image`, async () => {
    const random = createRandom(8)
    for (const by of ways) {
      for (let n = 0; n < 5; n += 1) {
        const flipped = Buffer.from(stored)
        const at = Math.floor(random() * stored.length)
        flipped[at] = (flipped[at] ?? 0) ^ (1 << Math.floor(random() * 8))
        const decoded = await decode(flipped, format, {}, by).catch((thrown: unknown) => {
          assert.is(thrown instanceof Fault && thrown.code, 'image-broken', `flip at ${at}`)
          return null
        })
        // Without a checksum in the format, only --sha256 can tell.
        if (name === 'zstd without checksum') continue
        assert.ok(decoded === null || decoded.equals(IMAGE), `flip at ${at}`)
      }
    }
  })
}

/** A file that is cut within its padding still holds everything. */
const isWhole = (name: string, stored: Buffer, at: number) =>
  name === 'gzip with padding' && at >= stored.length - (3 << 20)

const BYTES = makeBytes(1_000_000)

async function* failing() {
  yield Buffer.from('one')
  throw new Error('no more')
}
const thrownBy = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (thrown: unknown) => (thrown instanceof Error ? thrown.message : thrown),
  )

test('a chunk is done with before the next is asked for', async () => {
  // The source overwrites each chunk then, and the stream is slow.
  const parts: Buffer[] = []
  const slow = new Writable({
    highWaterMark: 1 << 24,
    write(chunk: Buffer, _, done) {
      setImmediate(() => {
        parts.push(Buffer.from(chunk))
        done()
      })
    },
  })
  await writeChunks(createMemorySource(BYTES, { chunkBytes: 9999 }).stream(), slow)
  assert.ok(Buffer.concat(parts).equals(BYTES))
})
test('a failure of the chunks is thrown', async () => {
  assert.is(await thrownBy(writeChunks(failing(), new PassThrough().resume())), 'no more')
})
test('a failure of the stream is thrown, and the chunks are given back', async () => {
  const broken = new Writable({ write: (_, __, done) => done(new Error('full')) })
  broken.on('error', () => undefined)
  let isBack = false
  async function* chunks() {
    try {
      for (;;) yield BYTES
    } finally {
      isBack = true
    }
  }
  assert.is(await thrownBy(writeChunks(chunks(), broken)), 'full')
  assert.ok(isBack)
})
test('a stream that is destroyed in the middle of a chunk does not hang', async () => {
  const stuck = new Transform({ transform: () => undefined })
  const feeding = thrownBy(writeChunks(createMemorySource(BYTES).stream(), stuck))
  setImmediate(() => stuck.destroy())
  assert.is(await feeding, 'closed before all was written')
})
test('a stream that has come to its own end takes no more, and nothing hangs', async () => {
  const short = new Transform({
    transform(chunk: Buffer) {
      this.push(chunk)
      this.push(null)
    },
  })
  const feeding = writeChunks(
    createMemorySource(BYTES, { chunkBytes: BYTES.length }).stream(),
    short,
  )
  const whole = await collect(short)
  await feeding
  assert.ok(whole.equals(BYTES))
})
test('no listener is left behind', async () => {
  const stream = new PassThrough().resume()
  const before = stream.eventNames().length
  await writeChunks(createMemorySource(BYTES, { chunkBytes: 100 }).stream(), stream)
  assert.ok(stream.listenerCount('close') + stream.listenerCount('end') < 5)
  assert.ok(stream.eventNames().length <= before + 1)
})

test('memory is given back with its last part only', () => {
  const whole = Buffer.alloc(1 << 20, 7)
  release(whole.subarray(0, 1000))
  assert.is(whole[1001], 7)
  release(whole.subarray(1000))
  assert.is(whole.buffer.byteLength, 0)
})
test("memory of Node's shared pool is nobody's to give back", () => {
  const small = Buffer.from('a few bytes')
  const neighbour = Buffer.from('more bytes')
  release(small)
  release(neighbour)
  assert.is(small.toString(), 'a few bytes')
  assert.is(neighbour.toString(), 'more bytes')
})

test.run()
