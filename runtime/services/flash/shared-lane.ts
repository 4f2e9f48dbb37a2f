/** One disk's way through an image that several disks share. */
import { crc32 } from 'node:zlib'
import type { Blocks } from '../image/blocks.ts'
import { createFiller, type Filler } from '../image/filler.ts'
import {
  copyBody,
  createRecorder,
  createZeroRuns,
  type CopyOrder,
  type Recorder,
} from './copier.ts'
import type { Feed } from './feed.ts'
import type { SharedPiece } from './shared-buffer.ts'

export type Lane = ReturnType<typeof createLane>

/** What is decoded for all lanes. */
export interface SharedContent {
  /** The next piece of a lane; null: none is left. A Fault where the image cannot be read. */
  take(lane: Lane): Promise<SharedPiece | null>
  readonly release: (piece: SharedPiece) => void
  /** Resolves when nothing more will be decoded. */
  readonly ended: Promise<void>
  /** Opens the image once more from an offset on; null: it can only be read from its beginning. */
  readonly enter: ((from: number) => Promise<Blocks>) | null
  /** The lane needs nothing more. */
  leave(lane: Lane): void
}

/** A part of a piece, held until it is released. */
interface Part {
  readonly piece: SharedPiece
  /** Within the piece. */
  readonly from: number
  readonly bytes: number
}

const roundUp = (bytes: number, unit: number) => Math.ceil(bytes / unit) * unit

export function createLane(shared: SharedContent) {
  const queue: SharedPiece[] = []
  let current: { readonly piece: SharedPiece; taken: number } | null = null
  let isDetached = false
  let woken = Promise.withResolvers<void>()
  let recorder: Recorder | null = null
  let position = 0
  let own: { readonly blocks: Blocks; readonly filler: Filler } | null = null

  const wake = () => {
    woken.resolve()
    woken = Promise.withResolvers<void>()
  }

  /** The next part of at most `limit` bytes; null: nothing is left for this lane here. */
  async function takePart(limit: number): Promise<Part | null> {
    if (current === null) {
      const piece = await shared.take(lane)
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
    return { piece, from: taken, bytes }
  }

  /** Null: the lane was not detached. */
  async function openOwn(): Promise<Filler | null> {
    if (!isDetached || shared.enter === null) return null
    if (own === null) {
      await shared.ended
      const blocks = await shared.enter(position)
      own = { blocks, filler: createFiller(blocks) }
    }
    return own.filler
  }

  async function fill(into: Buffer): Promise<number> {
    let at = 0
    while (at < into.length) {
      const part = await takePart(into.length - at)
      if (part === null) break
      copyPart(part, into.subarray(at))
      shared.release(part.piece)
      at += part.bytes
    }
    const rest = at < into.length ? await openOwn() : null
    return at + ((await rest?.fill(into.subarray(at))) ?? 0)
  }

  async function copy(order: CopyOrder): Promise<Awaited<ReturnType<typeof copyBody>>> {
    const { from, to, signal, tasks } = order
    recorder = createRecorder(order)
    const zeros = createZeroRuns(order, recorder)
    let offset = from
    while (offset < to) {
      signal.throwIfAborted()
      tasks.check()
      const part = await takePart(to - offset)
      if (part === null) break
      await writePart({ part, offset, order, recorder, zeros, release: shared.release })
      offset += part.bytes
    }
    await zeros.flush()
    const filler = offset < to ? await openOwn() : null
    if (filler === null) return { end: offset, written: recorder.written }
    return await copyBody({ ...order, filler, from: offset }, recorder)
  }

  function leave() {
    shared.leave(lane)
    drop()
  }

  function drop() {
    if (current !== null) shared.release(current.piece)
    current = null
    for (const piece of queue.splice(0)) shared.release(piece)
  }

  const feed: Omit<Feed, 'counted'> = {
    filler: { fill, takeZeros: () => 0 },
    copy,
    async [Symbol.asyncDispose]() {
      leave()
      const opened = own
      own = null
      await opened?.blocks[Symbol.asyncDispose]()
    },
  }
  const lane = {
    feed,
    leave,
    wake,
    push(piece: SharedPiece) {
      queue.push(piece)
      wake()
    },
    shift: () => queue.shift() ?? null,
    backlog: () => queue.length,
    untilWoken: () => woken.promise,
    isDetached: () => isDetached,
    /** What is being written is written; the rest is read once more from the source. */
    detach() {
      isDetached = true
      drop()
      wake()
    },
    /** Bytes per second while it writes; 0: not yet known. */
    rate: () => recorder?.rate() ?? 0,
  }
  return lane
}

function copyPart({ piece, from, bytes }: Part, into: Buffer) {
  if (piece.slot === null) into.fill(0, 0, bytes)
  else piece.slot.copy(into, 0, from, from + bytes)
}

interface WriteOrder {
  readonly part: Part
  /** On the disk. */
  readonly offset: number
  readonly order: CopyOrder
  readonly recorder: Recorder
  readonly zeros: ReturnType<typeof createZeroRuns>
  readonly release: (piece: SharedPiece) => void
}

/** Launches the write; a slot of the lane's own stands for it, so that only so many are under way. */
async function writePart({ part, offset, order, recorder, zeros, release }: WriteOrder) {
  const { piece, from, bytes } = part
  if (piece.slot === null) {
    await zeros.add(offset, bytes)
    release(piece)
    return
  }
  const isWhole = from === 0 && bytes === piece.bytes && piece.split !== null
  const split = isWhole && order.skipZeros ? piece.split : null
  for (const run of split?.zeros ?? []) await zeros.add(offset + run.offset, run.bytes)
  const length = roundUp(bytes, order.device.sectorBytes)
  const slot = piece.slot.subarray(from, from + length)
  const data = split?.data ?? [{ offset: 0, bytes: length, crc32: null }]
  const place = await order.slots.take()
  order.tasks.launch(async () => {
    try {
      for (const extent of data) {
        const cut = slot.subarray(extent.offset, extent.offset + extent.bytes)
        await recorder.write(cut, offset + extent.offset, () => extent.crc32 ?? crc32(cut))
      }
    } finally {
      order.slots.give(place)
      release(piece)
    }
  })
}
