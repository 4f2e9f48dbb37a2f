/** One disk's way through an image that several disks share. */
import { Fault } from '../../kit/foundation/fault.ts'
import { sumUp } from './checksum.ts'
import type { Blocks } from '../image/blocks.ts'
import { createFiller, type Filler } from '../image/filler.ts'
import {
  copyBody,
  createRecorder,
  createZeroRuns,
  type CopyOrder,
  type Recorder,
} from './copier.ts'
import type { ImageStream } from './image-stream.ts'
import type { SharedPiece } from './shared-buffer.ts'

export type Lane = ReturnType<typeof createLane>

/** What is decoded for all lanes. */
export interface SharedContent {
  /** The next piece of a lane; null: none is left. A Fault where the image cannot be read. */
  take(lane: Lane): Promise<SharedPiece | null>
  readonly release: (piece: SharedPiece, isAbandoned?: boolean) => void
  /** A lane that was detached still writes it. */
  readonly abandon: (piece: SharedPiece) => void
  /** Resolves when nothing more will be decoded. */
  readonly ended: Promise<void>
  /** Opens the image once more from an offset on; null: it can only be read from its beginning. */
  readonly enter: ((from: number) => Blocks) | null
  /** The lane needs nothing more. */
  leave(lane: Lane): void
}

/** A part of a piece, held until it is released. */
interface LanePart {
  readonly piece: SharedPiece
  /** The offset within the piece. */
  readonly from: number
  readonly bytes: number
}

const roundUp = (bytes: number, unit: number) => Math.ceil(bytes / unit) * unit

export function createLane(shared: SharedContent) {
  const queue: SharedPiece[] = []
  let isDetached = false
  let woken = Promise.withResolvers<void>()
  let recorder: Recorder | null = null
  const wake = () => {
    woken.resolve()
    woken = Promise.withResolvers<void>()
  }
  /** Pieces of which parts are under way, one for each part. */
  const held: SharedPiece[] = []
  function hold(piece: SharedPiece) {
    held.push(piece)
  }
  function release(piece: SharedPiece) {
    held.splice(held.indexOf(piece), 1)
    shared.release(piece, isDetached)
  }
  const takePiece = () => shared.take(lane)
  const parts = createParts({ takePiece, drop: shared.release, hold, release })
  const rest = createRest(shared, () => (isDetached ? parts.position() : null))

  function drop() {
    parts.drop()
    for (const piece of queue.splice(0)) shared.release(piece)
  }
  function leave() {
    shared.leave(lane)
    drop()
  }

  const imageStream: ImageStream = {
    filler: { fill: (into) => fillFrom(parts, rest, into), takeZeros: () => 0, takeKept: () => 0 },
    copy(order) {
      recorder = createRecorder(order)
      return copyParts(parts, rest, order, recorder)
    },
    async [Symbol.asyncDispose]() {
      leave()
      await rest.close()
    },
  }
  const lane = {
    imageStream,
    leave,
    wake,
    push(piece: SharedPiece) {
      queue.push(piece)
      wake()
    },
    shift: () => queue.shift() ?? null,
    /** Pieces in memory that it has yet to write. */
    backlog: () => queue.filter(({ slot }) => slot !== null).length,
    untilWoken: () => woken.promise,
    isDetached: () => isDetached,
    /** What is being written is written; the rest is read once more from the source. */
    detach() {
      drop()
      isDetached = true
      for (const piece of held) shared.abandon(piece)
      wake()
    },
    /** The rate of late, in bytes per second while it writes; null: not yet known. */
    rate: () => recorder?.recentRate() ?? null,
  }
  return lane
}

type Parts = ReturnType<typeof createParts>

interface PartSource {
  readonly takePiece: () => Promise<SharedPiece | null>
  /** Drops a piece that is not taken to its end. */
  readonly drop: (piece: SharedPiece) => void
  /** A part of it is under way until it is released. */
  readonly hold: (piece: SharedPiece) => void
  readonly release: (piece: SharedPiece) => void
}

/** Cuts the pieces as the disk needs them. */
function createParts({ takePiece, drop, hold, release }: PartSource) {
  let current: { readonly piece: SharedPiece; taken: number } | null = null
  let position = 0
  return {
    release,
    /** Where the next part begins, in the image. */
    position: () => position,
    /** The next part of at most `limit` bytes; null: nothing is left for this lane here. */
    async take(limit: number): Promise<LanePart | null> {
      if (current === null) {
        const piece = await takePiece()
        if (piece === null) return null
        current = { piece, taken: 0 }
      }
      const { piece, taken } = current
      const bytes = Math.min(limit, piece.bytes - taken)
      current.taken += bytes
      position += bytes
      // The lane's own hold goes over to the last part.
      if (current.taken === piece.bytes) current = null
      else piece.users += 1
      hold(piece)
      return { piece, from: taken, bytes }
    },
    drop() {
      if (current !== null) drop(current.piece)
      current = null
    },
  }
}

type Rest = ReturnType<typeof createRest>

/** What a detached lane reads by itself, once the others need the source no more. */
function createRest({ ended, enter }: SharedContent, position: () => number | null) {
  let own: { readonly blocks: Blocks; readonly filler: Filler } | null = null
  let isClosed = false
  return {
    /** Null: the lane was not detached. */
    async open(): Promise<Filler | null> {
      const from = position()
      if (from === null || enter === null) return null
      if (own === null) {
        await ended
        if (isClosed) throw new Fault('cancelled', 'cancelled')
        const blocks = enter(from)
        own = { blocks, filler: createFiller(blocks) }
      }
      return own.filler
    },
    async close() {
      isClosed = true
      const opened = own
      own = null
      await opened?.blocks[Symbol.asyncDispose]()
    },
  }
}

async function fillFrom(parts: Parts, rest: Rest, into: Buffer): Promise<number> {
  let at = 0
  while (at < into.length) {
    const part = await parts.take(into.length - at)
    if (part === null) break
    const { piece, from, bytes } = part
    if (piece.slot === null) into.fill(0, at, at + bytes)
    else piece.slot.copy(into, at, from, from + bytes)
    parts.release(piece)
    at += bytes
  }
  const filler = at < into.length ? await rest.open() : null
  return at + ((await filler?.fill(into.subarray(at))) ?? 0)
}

async function copyParts(parts: Parts, rest: Rest, order: CopyOrder, recorder: Recorder) {
  const { from, to, signal, tasks } = order
  const zeros = createZeroRuns(order, recorder)
  const writing = { order, recorder, zeros, release: parts.release }
  let offset = from
  while (offset < to) {
    signal.throwIfAborted()
    tasks.check()
    const part = await parts.take(to - offset)
    if (part === null) break
    await writePart(part, offset, writing)
    offset += part.bytes
  }
  await zeros.flush()
  const filler = offset < to ? await rest.open() : null
  if (filler === null) return { end: offset, written: recorder.written }
  return await copyBody({ ...order, filler, from: offset }, recorder)
}

interface Writing {
  readonly order: CopyOrder
  readonly recorder: Recorder
  readonly zeros: ReturnType<typeof createZeroRuns>
  readonly release: (piece: SharedPiece) => void
}

/** Launches the write when there is a place for it, so that only so many are under way. */
async function writePart(part: LanePart, offset: number, writing: Writing) {
  const { order, recorder, zeros, release } = writing
  const { piece, from, bytes } = part
  if (piece.slot === null) {
    await zeros.add(offset, bytes)
    release(piece)
    return
  }
  const slot = piece.slot.subarray(from, from + roundUp(bytes, order.device.sectorBytes))
  const split = splitOf(part, order)
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

/** Null: a part of a piece is written as it is. */
const splitOf = ({ piece, from, bytes }: LanePart, { skipZeros }: CopyOrder) =>
  skipZeros && from === 0 && bytes === piece.bytes ? piece.split : null
