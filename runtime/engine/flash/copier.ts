/** Copies the body of an image onto a device: data by aligned writes, runs of zeros by command. */
import {
  SHORTEST_ZERO_RUN,
  createExtentLog,
  splitZeros,
  type ExtentLog,
  type Range,
} from '#engine/disk/rules/extents.ts'
import { createBusyMeter, decideByCommand, longestZeroRun, SHORT_RUN_BYTES } from './rules/zeros.ts'
import { createSlot, type Device } from '#engine/disk/device.ts'
import type { Filler } from '#engine/image/filler.ts'
import { SLOT_BYTES, type TaskGroup, type Slots } from './write-slots.ts'
import type { Zeroer } from './zeroer.ts'
import process from 'node:process'
import { crc32 } from 'node:zlib'

/** What came to lie on the disk: data with checksums, and ranges that the device zeroed itself. */
export interface Written {
  readonly data: ExtentLog
  readonly zeroed: ExtentLog
}

export interface CopyOrder {
  readonly filler: Filler
  readonly device: Device
  readonly zeroer: Zeroer
  readonly slots: Slots
  readonly tasks: TaskGroup
  /** Whether runs of zeros are looked for at all. */
  readonly skipZeros: boolean
  /** Whether what is written will be read back as well. */
  readonly verifies: boolean
  /** The part of the device to fill: `from` is where the image stands, `to` where it must stop. */
  readonly from: number
  readonly to: number
  readonly signal: AbortSignal
  /** This gets the number of image bytes that came to rest. */
  readonly onWritten: (bytes: number) => void
  /** This gets the number of image bytes that lay there already. */
  readonly onKept: (bytes: number) => void
}

/** Zeroing commands that wait their turn; the reading stops when there are more. */
const MAX_ZEROING = 32

const now = () => performance.now() / 1000

const ZEROS = createSlot(SLOT_BYTES)
export const isZeroRange = (slot: Buffer, at: number, bytes: number) =>
  slot.compare(ZEROS, 0, bytes, at, at + bytes) === 0

/** Most written zeros come in whole slots: their checksum is worked out once. */
let wholeSlotOfZeros: number | null = null
function checksumOfZeros(part: Buffer): number {
  if (part.length !== SLOT_BYTES) return sumUp(part)
  wholeSlotOfZeros ??= sumUp(part)
  return wholeSlotOfZeros
}

const roundUp = (bytes: number, unit: number) => Math.ceil(bytes / unit) * unit

/** Returns the end of the image, or `to` when the image reaches it; all writes are launched then. */
export async function copyBody(order: CopyOrder): Promise<{ end: number; written: Written }> {
  const { filler, device, slots, tasks, from, to, signal } = order
  const recorder = createRecorder(order)
  const zeros = createZeroRuns(order, recorder)
  let offset = from
  while (offset < to) {
    signal.throwIfAborted()
    tasks.check()
    const skipped = order.skipZeros ? filler.takeZeros(wholeSectors(to - offset, device)) : 0
    const whole = wholeSectors(skipped, device)
    if (whole > 0) await zeros.add(offset, whole)
    offset += whole
    if (offset >= to) break
    const slot = await slots.take()
    // The first chunk is cut so that all others begin on a multiple of their size.
    const room = Math.min(SLOT_BYTES - (offset % SLOT_BYTES), to - offset)
    const rest = skipped - whole
    slot.fill(0, 0, rest)
    const bytes = rest + (await filler.fill(slot.subarray(rest, room)))
    if (bytes === 0) slots.give(slot)
    else await writePart(slot, offset, bytes)
    offset += bytes
    if (bytes >= room) continue
    const kept = takeKept(order)
    if (kept === 0) break
    offset += kept
  }
  await zeros.flush()
  return { end: offset, written: recorder.written }

  /** Launches the writing of what was filled into the slot, which is given back then. */
  async function writePart(slot: Buffer, start: number, bytes: number) {
    const length = roundUp(bytes, device.sectorBytes)
    slot.fill(0, bytes, length)
    const split = order.skipZeros
      ? splitZeros(length, (at, size) => isZeroRange(slot, at, size))
      : { data: [{ offset: 0, bytes: length }], zeros: [] }
    for (const run of split.zeros) await zeros.add(start + run.offset, run.bytes)
    tasks.launch(async () => {
      try {
        for (const extent of split.data) {
          const part = slot.subarray(extent.offset, extent.offset + extent.bytes)
          await recorder.write(part, start + extent.offset, sumUp)
        }
      } finally {
        slots.give(slot)
      }
    })
  }
}

/** The bytes that come next and that the disk already holds. */
function takeKept({ filler, onKept }: CopyOrder): number {
  const kept = filler.takeKept()
  if (kept > 0) onKept(kept)
  return kept
}

interface Recording extends Pick<CopyOrder, 'zeroer' | 'verifies' | 'onWritten'> {
  readonly device: Pick<Device, 'write'>
}

type Recorder = ReturnType<typeof createRecorder>

/** Writes, and records what came to lie where. */
export function createRecorder({ device, zeroer, verifies, onWritten }: Recording) {
  const data = createExtentLog()
  const zeroed = createExtentLog()
  const writing = createBusyMeter()
  return {
    written: { data, zeroed },
    decidesByCommand: (bytes: number) =>
      decideByCommand({ writing: writing.rate, zeroing: zeroer.rate }, bytes, verifies),
    longestZeroRun: (last: number) => longestZeroRun(zeroer.rate, last),
    isZeroerClosed: () => zeroer.isClosed,
    async write(part: Buffer, at: number, checksum: (part: Buffer) => number) {
      data.add(at, part.length, verifies ? checksum(part) : 0)
      writing.begin(now())
      await device.write(part, at)
      writing.end(now(), part.length)
      onWritten(part.length)
    },
    /** False: the device would not do it. */
    async zeroByCommand(range: Range) {
      if (!(await zeroer.zero(range))) return false
      zeroed.add(range.offset, range.bytes, 0)
      onWritten(range.bytes)
      return true
    },
  }
}

/** Collects zeros into runs, and launches the zeroing of each. */
export function createZeroRuns(
  { slots, tasks, signal, from }: Pick<CopyOrder, 'slots' | 'tasks' | 'signal' | 'from'>,
  recorder: Recorder,
) {
  let run: Range = { offset: from, bytes: 0 }
  let zeroing = 0
  let lastBytes = 0
  let lastZeroing: Promise<unknown> = Promise.resolve()

  async function zero(range: Range) {
    const byCommand = range.bytes >= SHORTEST_ZERO_RUN && recorder.decidesByCommand(range.bytes)
    if (byCommand && (await recorder.zeroByCommand(range))) return
    for (let at = 0; at < range.bytes; at += SLOT_BYTES) {
      signal.throwIfAborted()
      // The flash has failed: the command was not refused by the device, it was never run.
      if (recorder.isZeroerClosed()) return
      const part = ZEROS.subarray(0, Math.min(SLOT_BYTES, range.bytes - at))
      // Writes of zeros take places as well: a disk that hangs must leave others the process's threads.
      await slots.enter()
      try {
        await recorder.write(part, range.offset + at, checksumOfZeros)
      } finally {
        slots.leave()
      }
    }
  }

  async function flush() {
    const range = run
    run = { offset: range.offset + range.bytes, bytes: 0 }
    if (range.bytes === 0) return
    if (zeroing >= MAX_ZEROING) await lastZeroing
    zeroing += 1
    lastBytes = range.bytes
    tasks.launch(() => {
      const task = zero(range).finally(() => {
        zeroing -= 1
      })
      lastZeroing = task.catch(() => undefined)
      return task
    })
  }

  return {
    flush,
    async add(offset: number, bytes: number) {
      if (run.offset + run.bytes !== offset) {
        await flush()
        run = { offset, bytes: 0 }
      }
      for (let rest = bytes; rest > 0;) {
        // While the device is idle, a run is not held back to become longer.
        const isIdle = zeroing === 0
        const longest = isIdle ? SHORT_RUN_BYTES : wholeSlots(recorder.longestZeroRun(lastBytes))
        const part = Math.min(rest, Math.max(0, longest - run.bytes))
        run = { offset: run.offset, bytes: run.bytes + part }
        rest -= part
        if (run.bytes >= longest) await flush()
      }
    },
  }
}

const wholeSlots = (bytes: number) => bytes - (bytes % SLOT_BYTES)
const wholeSectors = (bytes: number, { sectorBytes }: Device) => bytes - (bytes % sectorBytes)

/** Sums up what is written, to recognise it when it is read back, in the way that this processor does faster. */
type Sum = (bytes: Buffer) => number

/** Nothing is kept secret: equal bytes shall have equal sums. */
const KEY = Buffer.alloc(16, 0x5a)
const NONCE = Buffer.alloc(12)

/** The 32 first bits of GHASH: fast where the processor has instructions for it, slow elsewhere. */
const sumByGhash: Sum = (bytes) => {
  // Loaded at the first write: a disk's ends are cleared before that.
  const cipher = process.getBuiltinModule('node:crypto').createCipheriv('aes-128-gcm', KEY, NONCE)
  cipher.setAAD(bytes)
  cipher.final()
  return cipher.getAuthTag().readUInt32LE()
}

const SAMPLE_BYTES = 256 * 1024

function chooseFaster(): Sum {
  const sample = Buffer.alloc(SAMPLE_BYTES)
  const timeOf = (sum: Sum) => {
    // The first call loads what it needs.
    sum(sample)
    const before = performance.now()
    sum(sample)
    return performance.now() - before
  }
  return timeOf(sumByGhash) < timeOf(crc32) ? sumByGhash : crc32
}

let chosen: Sum | null = null

/** Equal bytes have equal sums as long as this process runs. */
export function sumUp(bytes: Buffer): number {
  chosen ??= chooseFaster()
  return chosen(bytes)
}
