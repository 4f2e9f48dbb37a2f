/** Threads that work on frames: they end at any moment, and take frames of any size. */
import { zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createFrameWorkers, createSharedSlot } from '#engine/image/frame/frame-workers.ts'

const test = suite('frame threads')

function taskFor(content: Buffer) {
  const stored = zstdCompressSync(content)
  const from = createSharedSlot(stored.length)
  stored.copy(Buffer.from(from))
  const into = createSharedSlot(content.length)
  const bytes = content.length
  return { does: 'decode', from, storedBytes: stored.length, into, bytes, hashes: false } as const
}

test('decodes frames of every size, also those that Node keeps in shared memory', async () => {
  await using workers = createFrameWorkers(1)
  for (const bytes of [1, 300, 4096, 20_000, 32_704, 32_768, 65_536, 262_144, 300_000, 4 << 20]) {
    const content = Buffer.alloc(bytes, 'content ')
    const task = taskFor(content)
    assert.is((await workers.run(task)).bytes, bytes)
    assert.ok(Buffer.from(task.into).equals(content), `${bytes} bytes`)
  }
})

test('a thread that is ended amid its tasks does not take the process with it', async () => {
  const task = taskFor(Buffer.alloc(3000, 'x'))
  for (let round = 0; round < 40; round += 1) {
    const workers = createFrameWorkers(2)
    const tasks = Array.from({ length: 500 }, () => workers.run(task))
    const settled = Promise.allSettled(tasks)
    if (round % 2 === 0) await tasks[0]
    await workers[Symbol.asyncDispose]()
    for (const result of await settled) {
      if (result.status === 'fulfilled') assert.is(result.value.bytes, 3000)
      else assert.match(String(result.reason), /a thread of this program ended/)
    }
  }
})

test('what is asked of a thread that has ended is refused', async () => {
  const workers = createFrameWorkers(1)
  await workers[Symbol.asyncDispose]()
  await workers[Symbol.asyncDispose]()
  try {
    await workers.run(taskFor(Buffer.alloc(10)))
    assert.unreachable()
  } catch (thrown) {
    assert.match(String(thrown), /a thread of this program ended/)
  }
})

test.run()
