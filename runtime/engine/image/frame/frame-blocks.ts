/** The frames of an image as blocks in image order: fetched and decoded side by side, zeros never fetched. */
import type { Frame, FrameMap } from '../rules/frame-map.ts'
import { type Blocks, damaged, type Piece } from '../stream-blocks.ts'
import { createFrameWorkers, createSharedSlot, type FrameWorkers } from './frame-workers.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { findFrameEnd } from '../rules/zstd.ts'
import type { SeekableSource, ListedSource } from '../sources/source.ts'

/** `kept`: it is on the disk; `read`: in memory, but to be written; `differs`: not there. */
export type Compare = (
  frame: Frame,
  memory: SharedArrayBuffer,
  workers: FrameWorkers,
) => Promise<'kept' | 'read' | 'differs'>

interface Station {
  readonly stored: SharedArrayBuffer
  readonly content: SharedArrayBuffer
}

type Coming =
  | { readonly kind: 'zeros'; readonly bytes: number }
  | {
      readonly kind: 'frame'
      readonly frame: Frame
      readonly station: Station
      readonly loaded: Promise<'data' | 'kept'>
    }

const MAX_AHEAD_BYTES = 96 * 1024 * 1024

/** Threads end with the blocks. `next` rejects where a frame cannot be fetched or is damaged. */
export function openFrames({
  map,
  sources,
  compare,
}: {
  readonly map: FrameMap
  readonly sources: readonly [FrameFile, ...FrameFile[]]
  /** Absent: nothing is compared with the disk. */
  readonly compare?: Compare | undefined
}): Blocks {
  const workers = createFrameWorkers()
  const loader = createFrameLoader(sources, workers)
  const depth = decideDepth(map, workers.count)
  const free = Array.from({ length: depth }, (): Station => ({
    stored: createSharedSlot(Math.max(1, map.maxStoredBytes)),
    content: createSharedSlot(Math.max(1, map.maxBytes)),
  }))
  const steps = listSteps(map)
  const ahead: Coming[] = []
  const closing = { isClosed: false }
  let served = 0

  async function load(frame: Frame, { stored, content }: Station): Promise<'data' | 'kept'> {
    const found = (await compare?.(frame, content, workers)) ?? 'differs'
    if (found === 'kept') return 'kept'
    if (found === 'differs') await loader.load(frame, stored, content)
    return 'data'
  }

  function readAhead() {
    while (!closing.isClosed && free.length > 0 && ahead.length < depth * 2) {
      const step = steps.next()
      if (step.done === true) return
      if (step.value.kind === 'zeros') {
        ahead.push(step.value)
        continue
      }
      const station = free.pop()
      if (station === undefined) return
      const { frame } = step.value
      const loaded = load(frame, station)
      // Thrown when its turn comes.
      loaded.catch(() => undefined)
      ahead.push({ kind: 'frame', frame, station, loaded })
    }
  }

  function finish(station: Station) {
    ahead.shift()
    free.push(station)
    served = 0
  }

  return {
    async next(into): Promise<Piece | null> {
      readAhead()
      const [first] = ahead
      if (first === undefined) return null
      if (first.kind === 'zeros') {
        ahead.shift()
        return first
      }
      const { frame, station, loaded } = first
      if ((await loaded) === 'kept') {
        finish(station)
        return { kind: 'kept', bytes: frame.bytes }
      }
      const bytes = Math.min(frame.bytes - served, into.length)
      Buffer.from(station.content, served, bytes).copy(into)
      served += bytes
      if (served === frame.bytes) finish(station)
      return { kind: 'data', bytes }
    },
    async [Symbol.asyncDispose]() {
      closing.isClosed = true
      // Pending reads end by themselves.
      await workers[Symbol.asyncDispose]()
      await Promise.allSettled(ahead.map((one) => (one.kind === 'frame' ? one.loaded : null)))
    },
  }
}

/** Each thread has one at hand while others are fetched or written. */
function decideDepth({ maxBytes, maxStoredBytes }: FrameMap, threads: number): number {
  const fitting = Math.floor(MAX_AHEAD_BYTES / Math.max(1, maxBytes + maxStoredBytes))
  return Math.max(2, Math.min(threads + 1, fitting))
}

type Step =
  | { readonly kind: 'zeros'; readonly bytes: number }
  | { readonly kind: 'frame'; readonly frame: Frame }

function* listSteps(map: FrameMap): Generator<Step, undefined> {
  let zeros = 0
  for (let index = 0; index < map.count; index += 1) {
    const frame = map.at(index)
    if (frame.isZero) {
      zeros += frame.bytes
      continue
    }
    if (zeros > 0) yield { kind: 'zeros', bytes: zeros }
    zeros = 0
    yield { kind: 'frame', frame }
  }
  if (zeros > 0) yield { kind: 'zeros', bytes: zeros }
}

// Fetches and decodes single frames, from whichever source of the image has the least to do.

export type FrameFile = Pick<SeekableSource, 'name' | 'readAt'> &
  Partial<Pick<ListedSource, 'taken' | 'refused'>> & {
    /** Lower ranks are asked first, equal ones side by side; absent: 0. */
    readonly rank?: number
  }

const WRONG_TABLES = 'its tables do not say where its frames end'

interface ImageCopy {
  readonly source: FrameFile
  busy: number
  /** It failed or sent something else: asked again only where no other is left. */
  isBad: boolean
}

const compareTurns = (a: ImageCopy, b: ImageCopy): number =>
  Number(a.isBad) - Number(b.isBad) ||
  (a.source.rank ?? 0) - (b.source.rank ?? 0) ||
  a.busy - b.busy

export function createFrameLoader(sources: readonly FrameFile[], workers: FrameWorkers) {
  const copies: readonly ImageCopy[] = sources.map((source) => ({ source, busy: 0, isBad: false }))

  async function read(copy: ImageCopy, frame: Frame, stored: SharedArrayBuffer) {
    const into = Buffer.from(stored, 0, frame.storedBytes)
    copy.busy += 1
    try {
      const bytes = await copy.source.readAt(into, frame.storedAt)
      if (bytes < into.length) throw damaged(copy.source, 'it ends before its last frame does')
      if (findFrameEnd(into) !== into.length) throw damaged(copy.source, WRONG_TABLES)
    } finally {
      copy.busy -= 1
    }
  }

  async function decode(
    { source }: ImageCopy,
    frame: Frame,
    stored: SharedArrayBuffer,
    into: SharedArrayBuffer,
  ) {
    const { storedBytes, bytes, sha256 } = frame
    const hashes = sha256 !== null
    const task = { does: 'decode', from: stored, storedBytes, into, bytes, hashes } as const
    const found = await workers.run(task).catch((cause: unknown) => {
      // A failed thread says nothing about the image.
      throw cause instanceof Fault ? cause : damaged(source, cause)
    })
    if (sha256 === null || found.sha256 === sha256) return
    throw damaged(source, `frame ${frame.index} does not match the index`)
  }

  return {
    /** A Fault where no source has it. */
    async load(frame: Frame, stored: SharedArrayBuffer, into: SharedArrayBuffer): Promise<void> {
      const order = copies.toSorted(compareTurns)
      for (const [tries, copy] of order.entries()) {
        try {
          await read(copy, frame, stored)
          await decode(copy, frame, stored, into)
          copy.source.taken?.(frame.storedBytes)
          return
        } catch (thrown) {
          copy.isBad = true
          const isLast = tries === order.length - 1
          const isCancelled = thrown instanceof Fault && thrown.code === 'cancelled'
          if (!isCancelled) copy.source.refused?.(thrown)
          if (isLast || isCancelled) throw thrown
        }
      }
    },
  }
}
