/** Fetches and decodes single frames, from whichever source of the image has the least to do. */
import { Fault } from '#kit/foundation/fault.ts'
import type { Frame } from '../rules/frame-map.ts'
import { findFrameEnd } from '../rules/zstd-frame.ts'
import type { SeekableSource, ListedSource } from '../sources/source.ts'
import { damaged } from '../stream-blocks.ts'
import type { FrameWorkers } from './frame-workers.ts'

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
    throw damaged(source, `frame ${frame.index} does not hold what its index says`)
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
