import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  createRecorder,
  createZeroRuns,
  sumUp,
  createSlots,
  createTaskGroup,
} from '#engine/flash/copier.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'

const test = suite('runs of zeros')
const MIB = 1 << 20

interface Zeroing {
  /** What the device says to a command. */
  readonly zero: boolean
  readonly isClosed: boolean
  readonly rate: number | null
}

/** The commands, and the writes of zeros instead of them, for so many bytes at once. */
async function zeroAll(bytes: number, { zero, isClosed, rate }: Zeroing) {
  const commands: number[] = []
  let written = 0
  const tasks = createTaskGroup()
  const order = {
    device: {
      write: async (part: Buffer) => {
        written += part.length
      },
    },
    zeroer: {
      zero: async (range: { readonly bytes: number }) => {
        commands.push(range.bytes / MIB)
        return zero
      },
      isClosed,
      rate,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    },
    slots: createSlots(3),
    tasks,
    signal: new AbortController().signal,
    verifies: false,
    from: 0,
    onWritten: () => undefined,
  }
  const runs = createZeroRuns(order, createRecorder(order))
  await runs.add(0, bytes)
  await runs.flush()
  await tasks.land()
  return { commands, written }
}

test('commands become longer while others are under way, where the device is fast', async () => {
  const slow = await zeroAll(500 * MIB, { zero: true, isClosed: false, rate: null })
  assert.equal(slow, { commands: [128, 128, 128, 116], written: 0 })
  const fast = await zeroAll(3000 * MIB, { zero: true, isClosed: false, rate: 1e12 })
  assert.equal(fast, { commands: [128, 256, 512, 1024, 1024, 56], written: 0 })
})

test('what a device refuses is written, but not after the flash has failed', async () => {
  const refused = await zeroAll(9 * MIB, { zero: false, isClosed: false, rate: null })
  assert.equal(refused, { commands: [9], written: 9 * MIB })
  const failed = await zeroAll(9 * MIB, { zero: false, isClosed: true, rate: null })
  assert.equal(failed, { commands: [9], written: 0 })
})

test('equal bytes have equal sums; one bit more, less or elsewhere has another', () => {
  for (const bytes of [Buffer.alloc(4096), makeNoise(70_000, 3), makeNoise(1 << 20, 4)]) {
    const sum = sumUp(bytes)
    assert.is(sumUp(Buffer.from(bytes)), sum)
    for (const at of [0, 1, 4095, bytes.length >> 1, bytes.length - 1]) {
      const changed = Buffer.from(bytes)
      changed[at] = (bytes[at] ?? 0) ^ 0x10
      assert.is.not(sumUp(changed), sum, `byte ${at} of ${bytes.length}`)
    }
    assert.is.not(sumUp(bytes.subarray(0, -1)), sum)
    assert.is.not(sumUp(Buffer.concat([bytes, Buffer.alloc(512)])), sum)
  }
  const [one, two] = [makeNoise(4096, 1), makeNoise(4096, 2)]
  assert.is.not(sumUp(Buffer.concat([one, two])), sumUp(Buffer.concat([two, one])))
})

test.run()
