/** Reads a file here and there in windows, so that questions about neighbouring bytes cost one read. */
import { Fault } from '#kit/foundation/fault.ts'

interface WindowedFile {
  readonly name: string
  readonly sizeBytes: number | null
  readonly readAt: (into: Buffer, offset: number) => Promise<number>
  /** A read costs next to nothing. */
  readonly isNear: boolean
}

export type Windows = ReturnType<typeof createWindows>

/**
 * Large where reads are cheap and stay in the page cache; few and small where each costs a round
 * trip.
 */
const NEAR = { windowBytes: 1024 * 1024, maxReads: 65_536 }
const FAR = { windowBytes: 64 * 1024, maxReads: 8 }

/** Reads a little more than asked for, as the next question is often about the bytes beside. */
export function createWindows({ name, sizeBytes, readAt, isNear }: WindowedFile) {
  const { windowBytes, maxReads } = isNear ? NEAR : FAR
  const end = sizeBytes ?? Infinity
  const scratch = Buffer.allocUnsafe(windowBytes)
  const held = { first: NO_WINDOW, latest: NO_WINDOW }
  let reads = 0

  async function readWindow(at: number, length: number): Promise<Window> {
    const from = Math.max(0, Math.min(at, end - windowBytes))
    const wanted = Math.min(Math.max(windowBytes, at + length - from), end - from)
    const into = wanted <= windowBytes ? scratch.subarray(0, wanted) : Buffer.allocUnsafe(wanted)
    reads += 1
    return { from, bytes: into.subarray(0, await readAt(into, from)) }
  }

  return {
    isSpent: () => reads >= maxReads,
    /** At least `length` bytes, and all at hand after them; valid until the next. */
    async read(at: number, length: number): Promise<Buffer> {
      const hits = [held.first, held.latest].map((window) => bytesAt(window, at))
      const hit = hits.find((bytes) => bytes.length >= length)
      if (hit !== undefined) return hit
      held.latest = await readWindow(at, length)
      // A copy, as later windows reuse the memory.
      if (reads === 1) held.first = held.latest = copyOf(held.latest)
      const got = bytesAt(held.latest, at)
      if (got.length >= length || sizeBytes === null) return got
      throw new Fault('source-broken', `${name} became shorter while it was read`)
    },
  }
}

interface Window {
  readonly from: number
  readonly bytes: Buffer
}

const NO_WINDOW: Window = { from: 0, bytes: Buffer.alloc(0) }

const copyOf = ({ from, bytes }: Window): Window => ({ from, bytes: Buffer.from(bytes) })

const bytesAt = ({ from, bytes }: Window, at: number) =>
  at < from ? bytes.subarray(0, 0) : bytes.subarray(at - from)
