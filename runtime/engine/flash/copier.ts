/** Copies the body of an image onto a device, data by aligned writes, runs of zeros by command, and reads it back. */
import process from 'node:process'
import { createInterface } from 'node:readline'
import { crc32 } from 'node:zlib'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { createSlot, type Device, notHeld } from '#engine/disk/device.ts'
import {
  createExtentLog,
  type ExtentLog,
  isAllZero,
  type Range,
  SHORTEST_ZERO_RUN,
  splitZeros,
} from '#engine/disk/rules/extents.ts'
import type { Filler } from '#engine/image/stream-blocks.ts'
import { FORMATS } from '#engine/image/rules/format.ts'
import type { Shell } from '#kit/host/shell.ts'
import {
  createBusyMeter,
  decideByCommand,
  longestZeroRun,
  SHORT_RUN_BYTES,
  type ZeroMethod,
} from './rules/writing.ts'

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

/** The size of one write, and how many are under way at once. */
export const SLOT_BYTES = 4 * 1024 * 1024
const DEPTH = 4

/** One to fill and the rest under way; fewer where decoding is slower than any disk. */
export const countSlots = (format: ImageFormat): number => (FORMATS[format].isSlow ? 3 : DEPTH + 1)

/** Where buffers come from. */
export interface SlotPool {
  take(): Promise<Buffer>
  give(slot: Buffer): void
}

/** Made when they are first needed, and used again. */
function createOwnPool(): SlotPool {
  const free: Buffer[] = []
  return {
    take: () => Promise.resolve(free.pop() ?? createSlot(SLOT_BYTES)),
    give: (slot) => void free.push(slot),
  }
}

export type Slots = ReturnType<typeof createSlots>

export function createSlots(count: number, pool = createOwnPool()) {
  let free = count
  const waiting: (() => void)[] = []
  async function enter(): Promise<void> {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
  }
  function leave() {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
  return {
    /** Waits for a place; what is written there has memory of its own. */
    enter,
    leave,
    /** Waits for a place, and for a buffer. */
    async take(): Promise<Buffer> {
      await enter()
      return await pool.take()
    },
    give(slot: Buffer) {
      pool.give(slot)
      leave()
    },
  }
}

export type TaskGroup = ReturnType<typeof createTaskGroup>

/** Work in the background: the first failure is kept and thrown at the next call. */
export function createTaskGroup() {
  const running = new Set<Promise<void>>()
  let failure: { readonly thrown: unknown } | null = null
  /** Throws what failed so far. */
  const check = () => {
    if (failure !== null) throw failure.thrown
  }
  return {
    check,
    /** Starts work at once. */
    launch(work: () => Promise<void>) {
      const task: Promise<void> = work()
        .catch((thrown: unknown) => {
          failure ??= { thrown }
        })
        .finally(() => running.delete(task))
      running.add(task)
    },
    /** Waits for all of it, then throws what failed. */
    async land() {
      await Promise.all(running)
      check()
    },
  }
}

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

interface Zeroer extends AsyncDisposable {
  /** True when the device now reads back zeros there; false when it would not do it. */
  zero(range: Range): Promise<boolean>
  /** It was disposed of: a range is refused without asking the device. */
  readonly isClosed: boolean
  /** Bytes per second, measured on long runs only; null before the first of them. */
  readonly rate: number | null
}

/**
 * Reads `offset length` lines and answers each with the command's exit code. The device is opened
 * anew by each command, which an exclusive open by us allows (blkdiscard's own check is off: -f).
 */
const COMMANDS: Readonly<Record<Exclude<ZeroMethod, 'write'>, string>> = {
  'zero-out': 'fallocate --punch-hole -o "$o" -l "$l" "$0"',
  'zero-range': 'fallocate --zero-range -o "$o" -l "$l" "$0"',
  discard: 'blkdiscard -f -o "$o" -l "$l" "$0"',
}

/** A shorter run would measure only the start of the command. */
const MIN_MEASURED_RUN = 16 * 1024 * 1024
const nowSeconds = () => performance.now() / 1000

interface ZeroJob {
  readonly range: Range
  readonly answer: (isZero: boolean) => void
}

export function createZeroer(
  shell: Shell,
  { node, fd }: Pick<Device, 'node' | 'fd'>,
  method: ZeroMethod,
): Zeroer {
  if (method === 'write') {
    let isWritingClosed = false
    return {
      zero: async () => false,
      rate: null,
      get isClosed() {
        return isWritingClosed
      },
      async [Symbol.asyncDispose]() {
        isWritingClosed = true
      },
    }
  }
  const script = `while read -r o l; do ${COMMANDS[method]} 2>/dev/null; echo $?; done`
  const child = shell.pipe(['/bin/sh', '-c', script, node], [fd])
  /** The first one is under way. */
  const jobs: ZeroJob[] = []
  const refuse = (refused: readonly ZeroJob[]) => {
    for (const { answer } of refused) answer(false)
  }
  const gone = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('close', () => resolve())
  })
  void gone.then(() => refuse(jobs.splice(0)))
  // A child that died is seen by `gone`; a write to its closed pipe says nothing more.
  child.stdin.on('error', () => undefined)

  // One at a time, so that after our end none is left to be read from the pipe.
  const speed = createBusyMeter()
  let startedAt = 0
  let isClosed = false
  function startFirst() {
    const [job] = jobs
    if (job === undefined) return
    startedAt = nowSeconds()
    child.stdin.write(`${job.range.offset} ${job.range.bytes}\n`)
  }
  createInterface({ input: child.stdout }).on('line', (code) => {
    const job = jobs.shift()
    if (job !== undefined && job.range.bytes >= MIN_MEASURED_RUN) {
      speed.begin(startedAt)
      speed.end(nowSeconds(), job.range.bytes)
    }
    job?.answer(code === '0')
    startFirst()
  })
  return {
    get isClosed() {
      return isClosed
    },
    get rate() {
      return speed.rate
    },
    zero: (range) =>
      new Promise((resolve) => {
        if (child.exitCode !== null || !child.stdin.writable) return resolve(false)
        jobs.push({ range, answer: resolve })
        if (jobs.length === 1) startFirst()
      }),
    async [Symbol.asyncDispose]() {
      isClosed = true
      refuse(jobs.splice(1))
      child.stdin.end()
      await gone
    },
  }
}

interface VerifyOrder {
  readonly device: Device
  readonly written: Written
  /** Read the ranges that the device zeroed itself as a whole, not only samples of them. */
  readonly all: boolean
  /** Read only what ends before this; absent: all of it. */
  readonly to?: number
  readonly slots: Slots
  readonly tasks: TaskGroup
  readonly signal: AbortSignal
  readonly onVerified: (bytes: number) => void
}

/** Samples of a zeroed range: its first and last bytes, and as many between at this distance. */
const ZERO_SAMPLE_BYTES = 64 * 1024
const ZERO_SAMPLE_DISTANCE = 64 * 1024 * 1024

/** A Fault `verify-failed` names the first place that differs. */
export async function verifyWritten(order: VerifyOrder): Promise<void> {
  const { device, slots, tasks, signal, onVerified } = order
  async function check(range: Range, isRight: (bytes: Buffer) => boolean) {
    signal.throwIfAborted()
    tasks.check()
    const slot = await slots.take()
    tasks.launch(async () => {
      try {
        const part = slot.subarray(0, range.bytes)
        await device.read(part, range.offset)
        if (!isRight(part)) throw notHeld(device.node, range)
        onVerified(range.bytes)
      } finally {
        slots.give(slot)
      }
    })
  }
  const isWanted = ({ offset, bytes }: Range) => offset + bytes <= (order.to ?? Infinity)
  for (let index = 0; index < order.written.data.count; index += 1) {
    const extent = order.written.data.at(index)
    if (isWanted(extent)) await check(extent, (bytes) => sumUp(bytes) === extent.checksum)
  }
  for (const range of zeroRanges(order)) if (isWanted(range)) await check(range, isAllZero)
  await tasks.land()
}

/** How many bytes a verification reads. */
export function bytesToVerify(order: Pick<VerifyOrder, 'written' | 'all'>): number {
  let bytes = order.written.data.totalBytes
  for (const range of zeroRanges(order)) bytes += range.bytes
  return bytes
}

function* zeroRanges({ written, all }: Pick<VerifyOrder, 'written' | 'all'>): Generator<Range> {
  const size = all ? SLOT_BYTES : ZERO_SAMPLE_BYTES
  const step = all ? SLOT_BYTES : ZERO_SAMPLE_DISTANCE
  for (let index = 0; index < written.zeroed.count; index += 1) {
    const { offset, bytes } = written.zeroed.at(index)
    for (let at = 0; at < bytes; at += step) {
      yield { offset: offset + at, bytes: Math.min(size, bytes - at) }
    }
    const last = Math.max(0, bytes - size)
    if (!all && last % step !== 0) yield { offset: offset + last, bytes: bytes - last }
  }
}
