/**
 * One fetch and one decode of an image for several disks, through a bounded buffer: the slowest disk
 * decides the speed, and one that does nothing for too long while the others wait fails alone.
 */
import { Fault } from '#kit/foundation/fault.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { createSlot } from '#engine/disk/device.ts'
import { splitZeros, type Range } from '#engine/disk/rules/extents.ts'
import { type Blocks, createFiller, type Filler } from '#engine/image/stream-blocks.ts'
import type { Decoders } from '#engine/image/formats.ts'
import type { Source } from '#engine/image/sources/source.ts'
import {
  type CopyOrder,
  createRecorder,
  createZeroRuns,
  isZeroRange,
  SLOT_BYTES,
  type SlotPool,
  sumUp,
} from './copier.ts'
import { openImage, type ImageStream, type OpenStream } from './image-stream.ts'
import { createWaits } from './meter.ts'
import type { FlashPlan } from './rules/flash-plan.ts'
import { decideStalled } from './rules/writing.ts'

/** How much the fastest disk may be ahead of the slowest: 64 MiB. */
const DECODED_SLOTS = 16
/** All memory of slots, for however many disks: 80 MiB, and at most 24 MiB for each that hangs. */
const ALL_SLOTS = 20
/** The time between two looks for disks that have stalled. */
const LOOK_MS = 250

/** One disk's flash, and the image's content for it. */
export interface SharedFlash {
  readonly plan: FlashPlan
  readonly openStream: OpenStream
  /** Aborts with the whole flash, and with a Fault once this disk has stalled. */
  readonly signal: AbortSignal
  /** The disk needs nothing more of the content. */
  leave(): void
}

interface SharedOptions {
  readonly signal: AbortSignal
  /** A disk fails that does nothing for so long while others wait for it. */
  readonly stallMs: number
}

/** Opens an image for several disks: an image stream for each plan. A Fault as `openImage` has it. */
export async function shareImage(
  decoders: Decoders,
  plans: readonly [FlashPlan, ...FlashPlan[]],
  { source, mirrors }: { readonly source: Source; readonly mirrors: readonly Source[] },
  { signal, stallMs }: SharedOptions,
): Promise<readonly SharedFlash[]> {
  const around = { waits: createWaits(), signal, mirrors }
  const [plan] = plans
  const { counted, open } = await openImage(decoders, plan, source, around)
  const verifies = plan.verify !== 'none'
  const { join } = createSharedContent({ open: () => open(), verifies, signal, stallMs })
  let checked: (() => void) | null = null
  /** Computed at the first call: a digest can be asked for only once. */
  const checkDigest = () => {
    checked ??= keepOutcome(() => counted.checkDigest())
    checked()
  }
  return plans.map((each) => {
    const { pool, imageStream, ...lane } = join(each.target.node)
    const opened = {
      counted: { ...counted, checkDigest },
      map: null,
      pool,
      open: () => Promise.resolve(imageStream),
    }
    return { plan: each, openStream: () => Promise.resolve(opened), ...lane }
  })
}

function keepOutcome(act: () => void): () => void {
  try {
    act()
    return () => {}
  } catch (thrown) {
    return () => {
      throw thrown
    }
  }
}

interface ContentOptions extends SharedOptions {
  /** Opens the image's decoded content, once. */
  readonly open: () => Promise<Blocks>
  /** Whether what is written will be read back. */
  readonly verifies: boolean
}

function createSharedContent({ open, verifies, signal, stallMs }: ContentOptions) {
  const lanes = new Set<Lane>()
  let ending: { readonly failure: { readonly thrown: unknown } | null } | null = null
  let pumping: Promise<void> | null = null

  const slots = createSharedSlots(() => {
    const all = [...lanes]
    const seen = all.map(({ isHolding, idleMs }) => ({ isHolding: isHolding(), idleMs: idleMs() }))
    for (const index of decideStalled(seen, stallMs)) all[index]?.stall(stallMs)
  })

  const decoding = {
    ...slots,
    take: () => untilAborted(signal, slots.take(DECODED_SLOTS)),
  }

  /** Reads the image to its end, or until no disk wants more of it. */
  async function pump() {
    await using blocks = await open()
    for await (const decoded of decode(createFiller(blocks), verifies, decoding)) {
      signal.throwIfAborted()
      const piece = { ...decoded, users: lanes.size, isLost: false }
      for (const lane of lanes) lane.push(piece)
      if (lanes.size === 0) return
    }
  }

  function start() {
    pumping ??= pump()
      .then(
        () => null,
        (thrown: unknown) => ({ thrown }),
      )
      .then((failure) => {
        ending = { failure }
        for (const lane of lanes) lane.wake()
      })
  }

  const content: Content = {
    slots,
    start,
    ending: () => ending,
    release(piece) {
      piece.users -= 1
      if (piece.users === 0 && piece.slot !== null) slots.give(piece.isLost ? null : piece.slot)
    },
  }
  return {
    /** One disk more, by its device node. */
    join(node: string) {
      const own = new AbortController()
      const lane = createLane(content, (milliseconds) => own.abort(stalled(node, milliseconds)))
      lanes.add(lane)
      function leave() {
        lanes.delete(lane)
        lane.leave()
      }
      const { copy, filler, pool } = lane
      const imageStream: ImageStream = {
        filler,
        copy,
        [Symbol.asyncDispose]: () => Promise.resolve(leave()),
      }
      return { imageStream, pool, leave, signal: AbortSignal.any([signal, own.signal]) }
    },
  }
}

const stalled = (node: string, milliseconds: number) =>
  new Fault(
    'write-failed',
    `${node} did nothing for ${milliseconds / 1000} s while the other disks waited for it`,
    { hint: 'The disk, its cable or its reader is failing: flash it alone, or use another one.' },
  )

/** The memory of all disks. `look` is called again and again while somebody waits for a slot. */
function createSharedSlots(look: () => void) {
  const free: Buffer[] = []
  const waiting: { readonly most: number; readonly resolve: () => void }[] = []
  let used = 0
  /** Counted, not read from a clock: a process that was stopped for a while saw no disk do nothing. */
  let waitedMs = 0
  let looking: NodeJS.Timeout | undefined

  async function untilFree(most: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ most, resolve })
    looking ??= setInterval(() => {
      waitedMs += LOOK_MS
      look()
    }, LOOK_MS)
    await promise
  }

  return {
    /** For how long somebody has waited for a slot, in all. */
    waitedMs: () => waitedMs,
    /** Waits until fewer than `most` are used. */
    async take(most: number): Promise<Buffer> {
      if (used < most) used += 1
      else await untilFree(most)
      return free.pop() ?? createSlot(SLOT_BYTES)
    },
    /** Null: a disk that is given up may still read from it, so that another one takes its place. */
    give(slot: Buffer | null) {
      if (slot !== null) free.push(slot)
      const next = waiting.findIndex(({ most }) => used <= most)
      if (next === -1) {
        used -= 1
        return
      }
      for (const { resolve } of waiting.splice(next, 1)) resolve()
      if (waiting.length > 0) return
      clearInterval(looking)
      looking = undefined
    },
  }
}

/** What was decoded, at its place in the image. */
interface Decoded extends Range {
  /** Null: these are zeros. */
  readonly slot: Buffer | null
  /** The data and the zeros in the slot; null: the piece is no whole number of 4096 bytes. */
  readonly split: {
    readonly data: readonly (Range & { readonly checksum: number })[]
    readonly zeros: readonly Range[]
  } | null
}

interface Piece extends Decoded {
  users: number
  /** A disk that was given up may still read from its slot. */
  isLost: boolean
}

/** Sectors are not larger: what ends on a multiple of it ends on a whole sector of every disk. */
const GRAIN = 4096

/** Decodes the image once: runs of zeros, and what fills a slot each. */
async function* decode(
  filler: Filler,
  verifies: boolean,
  slots: { readonly take: () => Promise<Buffer>; readonly give: (slot: Buffer) => void },
): AsyncGenerator<Decoded> {
  for (let offset = 0; ;) {
    const skipped = filler.takeZeros(Number.MAX_SAFE_INTEGER)
    const rest = skipped % GRAIN
    const zeros = skipped - rest
    if (zeros > 0) yield { offset, bytes: zeros, slot: null, split: null }
    offset += zeros
    const slot = await slots.take()
    slot.fill(0, 0, rest)
    // A piece ends on a multiple of its size, so that all others begin on one.
    const room = SLOT_BYTES - (offset % SLOT_BYTES)
    const bytes = rest + (await filler.fill(slot.subarray(rest, room)))
    if (bytes === 0) return slots.give(slot)
    slot.fill(0, bytes)
    yield { offset, bytes, slot, split: splitSlot(slot, bytes, verifies) }
    offset += bytes
  }
}

/** Finds data and zeros, and sums up the data once for all disks, if it will be read back. */
function splitSlot(slot: Buffer, bytes: number, verifies: boolean): Decoded['split'] {
  if (bytes % GRAIN !== 0) return null
  const { data, zeros } = splitZeros(bytes, (at, size) => isZeroRange(slot, at, size))
  const summed = data.map((range) => {
    const { offset, bytes: length } = range
    return { ...range, checksum: verifies ? sumUp(slot.subarray(offset, offset + length)) : 0 }
  })
  return { data: summed, zeros }
}

/** What is decoded for all disks, and their memory. */
interface Content {
  readonly slots: {
    /** For how long somebody has waited for a slot, in all. */
    waitedMs(): number
    /** Waits until fewer than `most` are used. */
    take(most: number): Promise<Buffer>
    /** Null: one that was given up. */
    give(slot: Buffer | null): void
  }
  /** Begins to read the image, at the first call. */
  start(): void
  /** Whether all of it was decoded, or why not; null: it is still being read. */
  ending(): { readonly failure: { readonly thrown: unknown } | null } | null
  /** One user less. */
  release(piece: Piece): void
}

/** A part of a piece, held until it is released. */
interface Part {
  readonly piece: Piece
  /** The offset within the piece. */
  readonly from: number
  readonly bytes: number
}

type Lane = ReturnType<typeof createLane>

/** One disk's way through the image. `stall` ends its flash. */
function createLane(content: Content, stall: (milliseconds: number) => void) {
  const { slots } = content
  const parts = createParts(content)
  const { take, release } = parts
  /** The slots that it reads the disk back into. */
  let reading = 0
  let doneAt = slots.waitedMs()
  let hasLeft = false
  const note = () => {
    doneAt = slots.waitedMs()
  }
  const isHolding = () => reading > 0 || parts.isHolding()

  const pool: SlotPool = {
    async take() {
      const slot = await slots.take(ALL_SLOTS)
      // Before it held something, nobody waited for it.
      if (!isHolding()) note()
      reading += 1
      if (!hasLeft) return slot
      pool.give(slot)
      throw left()
    },
    give(slot) {
      if (reading === 0) return
      reading -= 1
      note()
      slots.give(slot)
    },
  }

  return {
    filler: {
      fill: (into: Buffer) => fillFrom(parts, into),
      takeZeros: () => 0,
      takeKept: () => 0,
    },
    async copy(order: CopyOrder) {
      const { from, to, signal, tasks } = order
      const onWritten = (bytes: number) => {
        note()
        order.onWritten(bytes)
      }
      const recorder = createRecorder({ ...order, onWritten })
      const zeros = createZeroRuns(order, recorder)
      let offset = from
      while (offset < to) {
        signal.throwIfAborted()
        tasks.check()
        const part = await take(to - offset)
        if (part === null) break
        await writePart(part, offset, { order, recorder, zeros, release })
        offset += part.bytes
      }
      await zeros.flush()
      return { end: offset, written: recorder.written }
    },
    pool,
    push(piece: Piece) {
      if (!isHolding()) note()
      parts.push(piece)
    },
    wake: parts.wake,
    stall,
    isHolding,
    idleMs: () => slots.waitedMs() - doneAt,
    /** Gives everything back, and gives up what the disk has not answered for: that may never end. */
    leave() {
      hasLeft = true
      parts.leave()
      for (; reading > 0; reading -= 1) slots.give(null)
    },
  }
}

const left = () => new Fault('cancelled', 'cancelled')

type Parts = ReturnType<typeof createParts>

/** Cuts the pieces as the disk needs them. */
function createParts({ start, ending, release: releasePiece }: Content) {
  /** What it has yet to write, in order. */
  const queue: Piece[] = []
  /** The bytes of the first of them that were taken. */
  let taken = 0
  /** What it is writing, once for each part. */
  const held: Piece[] = []
  let hasLeft = false
  let woken = Promise.withResolvers<void>()

  function wake() {
    woken.resolve()
    woken = Promise.withResolvers<void>()
  }

  /** Null: the image ends here. A Fault where it cannot be read. */
  async function awaitPiece(): Promise<Piece | null> {
    start()
    for (;;) {
      if (hasLeft) throw left()
      const [piece] = queue
      if (piece !== undefined) return piece
      const ended = ending()
      if (ended !== null && ended.failure !== null) throw ended.failure.thrown
      if (ended !== null) return null
      await woken.promise
    }
  }

  return {
    wake,
    push(piece: Piece) {
      queue.push(piece)
      wake()
    },
    isHolding: () => [...queue, ...held].some(({ slot }) => slot !== null),
    /** The next part of at most `limit` bytes; null: the image ends here. */
    async take(limit: number): Promise<Part | null> {
      const piece = await awaitPiece()
      if (hasLeft) throw left()
      if (piece === null) return null
      const from = taken
      const bytes = Math.min(limit, piece.bytes - from)
      taken += bytes
      if (taken < piece.bytes) {
        piece.users += 1
      } else {
        // The lane's own use of it goes over to the last part.
        queue.shift()
        taken = 0
      }
      held.push(piece)
      return { piece, from, bytes }
    },
    release(piece: Piece) {
      const at = held.indexOf(piece)
      // It was given up when the lane left.
      if (at === -1) return
      held.splice(at, 1)
      releasePiece(piece)
    },
    leave() {
      hasLeft = true
      for (const piece of held.splice(0)) {
        piece.isLost = true
        releasePiece(piece)
      }
      for (const piece of queue.splice(0)) releasePiece(piece)
      wake()
    },
  }
}

async function fillFrom({ take, release }: Parts, into: Buffer): Promise<number> {
  let at = 0
  while (at < into.length) {
    const part = await take(into.length - at)
    if (part === null) break
    const { piece, from, bytes } = part
    if (piece.slot === null) into.fill(0, at, at + bytes)
    else piece.slot.copy(into, at, from, from + bytes)
    release(piece)
    at += bytes
  }
  return at
}

interface PartWriting {
  readonly order: CopyOrder
  readonly recorder: ReturnType<typeof createRecorder>
  readonly zeros: ReturnType<typeof createZeroRuns>
  readonly release: (piece: Piece) => void
}

const roundUp = (bytes: number, unit: number) => Math.ceil(bytes / unit) * unit

/** Launches the write when there is a place for it, so that only so many are under way. */
async function writePart(part: Part, offset: number, writing: PartWriting) {
  const { order, recorder, zeros, release } = writing
  const { piece, from, bytes } = part
  if (piece.slot === null) {
    await zeros.add(offset, bytes)
    release(piece)
    return
  }
  const slot = piece.slot.subarray(from, from + roundUp(bytes, order.device.sectorBytes))
  // A part of a piece is written as it is.
  const isWhole = from === 0 && bytes === piece.bytes
  const split = order.skipZeros && isWhole ? piece.split : null
  for (const run of split?.zeros ?? []) await zeros.add(offset + run.offset, run.bytes)
  const data = split?.data ?? [{ offset: 0, bytes: slot.length, checksum: null }]
  await order.slots.enter()
  order.tasks.launch(async () => {
    try {
      for (const extent of data) {
        const cut = slot.subarray(extent.offset, extent.offset + extent.bytes)
        await recorder.write(cut, offset + extent.offset, () => extent.checksum ?? sumUp(cut))
      }
    } finally {
      order.slots.leave()
      release(piece)
    }
  })
}
