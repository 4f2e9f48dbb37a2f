import { PassThrough, Transform, Writable } from 'node:stream'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { writeChunks, release } from '#engine/image/stream-blocks.ts'
import { collect, makeBytes } from '#test/support/collect.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'

const test = suite('chunks')
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
