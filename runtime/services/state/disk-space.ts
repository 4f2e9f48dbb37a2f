/** How much room is left where the state lies, and a word in time before there is none. */
import { statfs } from 'node:fs/promises'
import { Fault } from '../../core/foundation/fault.ts'
import { isFull } from '../../core/foundation/system-error.ts'
import type { Journal } from './journal.ts'

interface DiskSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

/** Of the disk that holds a path; without what is reserved for root. */
export async function readSpace(path: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(path)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

/** Throws when a disk has not got `bytes` left; `what` begins the sentence. */
export async function requireSpace(path: string, bytes: number, what: string): Promise<void> {
  const { freeBytes } = await readSpace(path)
  if (freeBytes >= bytes) return
  throw new Fault(
    'storage-full',
    `${what} needs ${mebibytes(bytes)} of free space in ${path}, ${mebibytes(freeBytes)} are left`,
    { hint: 'Free space on that disk, or keep fewer backups, events and .bak files there.' },
  )
}

/** What the file system says when it is full, with the way out; null for anything else. */
export async function describeFullDisk(thrown: unknown, path: string): Promise<Fault | null> {
  if (!isFull(thrown)) return null
  // Best effort: that it is full is what counts.
  const left = await readSpace(path).catch(() => null)
  const words = left === null ? '' : ` (${mebibytes(left.freeBytes)} free)`
  return new Fault('storage-full', `no space left in ${path}${words}`, {
    hint: 'Free space on that disk, then try again; nothing was changed.',
    cause: thrown,
  })
}

interface SpaceWatchDependencies {
  /** The state directory. */
  readonly path: string
  readonly journal: Journal
  /** Below so much it is low; read at each look. */
  warnBelow(): number
  /** Told each time that it gets low. */
  onLow?(message: string): void
}

interface SpaceWatch extends Disposable {
  look(): Promise<DiskSpace & { readonly isLow: boolean }>
}

const LOOK_MS = 300_000

/** Looks now and every five minutes; one event (`system.disk.low`) each time that it gets low. */
export function watchSpace({
  path,
  journal,
  warnBelow,
  onLow,
}: SpaceWatchDependencies): SpaceWatch {
  let wasLow = false

  async function look() {
    const space = await readSpace(path)
    // On a small disk a tenth of it is what "low" can mean at most.
    const isLow = space.freeBytes < Math.min(warnBelow(), space.totalBytes / 10)
    if (isLow && !wasLow) {
      const summary = `Only ${mebibytes(space.freeBytes)} are left on the disk that holds ${path}`
      onLow?.(summary)
      await journal.record({
        kind: 'system.disk.low',
        subject_kind: 'system',
        subject_id: null,
        actor: 'system',
        source_ip: null,
        summary,
        details: { free_bytes: space.freeBytes, total_bytes: space.totalBytes },
      })
    }
    wasLow = isLow
    return { ...space, isLow }
  }

  const lookOn = () => {
    // Best effort: the next look comes.
    look().catch(() => undefined)
  }
  const timer = setInterval(lookOn, LOOK_MS).unref()
  lookOn()
  return {
    look,
    [Symbol.dispose]() {
      clearInterval(timer)
    },
  }
}

const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`
