/** Checks the free space of the state directory, and warns before it runs out. */
import { statfs } from 'node:fs/promises'
import { Fault, isFull } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { SYSTEM_EVENT } from './event-rows.ts'
import type { Journal } from './journal.ts'

/** In bytes, without root's reserve. */
export async function readSpace(path: string) {
  const { bavail, blocks, bsize } = await statfs(path)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

/** `what` begins the Fault's sentence. */
export async function requireSpace(path: string, bytes: number, what: string): Promise<void> {
  const { freeBytes } = await readSpace(path)
  if (freeBytes >= bytes) return
  throw new Fault(
    'storage-full',
    `${what} needs ${renderSize(bytes)} of free space in ${path}, ${renderSize(freeBytes)} free`,
    { hint: 'Free space on that disk, or keep fewer backups, events and .bak files there.' },
  )
}

/** Null: the file system is not full. */
export async function describeFullDisk(thrown: unknown, path: string): Promise<Fault | null> {
  if (!isFull(thrown)) return null
  // Best effort: that it is full is what counts.
  const left = await readSpace(path).catch(() => null)
  const room = left === null ? '' : ` (${renderSize(left.freeBytes)} free)`
  return new Fault('storage-full', `no space left in ${path}${room}`, {
    hint: 'Free space on that disk, then try again; nothing was changed.',
    cause: thrown,
  })
}

interface SpaceWatchDependencies {
  readonly path: string
  readonly journal: Journal
  /** Bytes; read at each look. */
  warnBelow(): number
  onLow?(message: string): void
}

const LOOK_MS = 300_000

/** Every five minutes until disposed of; one `system.disk.low` event each time it gets low. */
export function watchSpace({ path, journal, warnBelow, onLow }: SpaceWatchDependencies) {
  let wasLow = false

  async function look() {
    const space = await readSpace(path)
    // On a small disk, a tenth is low.
    const isLow = space.freeBytes < Math.min(warnBelow(), space.totalBytes / 10)
    if (isLow && !wasLow) {
      const summary = `Only ${renderSize(space.freeBytes)} free on the disk that holds ${path}`
      onLow?.(summary)
      await journal.record({
        ...SYSTEM_EVENT,
        kind: 'system.disk.low',
        summary,
        details: { free_bytes: space.freeBytes, total_bytes: space.totalBytes },
      })
    }
    wasLow = isLow
    return { ...space, isLow }
  }

  // Best effort: the next look comes.
  const lookLater = () => void look().catch(() => undefined)
  const timer = setInterval(lookLater, LOOK_MS).unref()
  lookLater()
  return {
    look,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
