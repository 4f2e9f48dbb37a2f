/** Files of a folder as a web server needs them: opened once, described, and read in parts. */
import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Readable } from 'node:stream'

export interface ServedFile {
  readonly sizeBytes: number
  /** Milliseconds since the epoch. */
  readonly modifiedAt: number
  /** The bytes from `from` to `to`, inclusive; the file is closed when they are read or given up. */
  read(from: number, to: number): Readable
  /** Only when nothing was read. */
  close(): Promise<void>
}

/** Bytes of one read: fewer turns between disk and network than Node's 64 KiB. */
const READ_BYTES = 256 * 1024

/**
 * Null when there is no such regular file, or when it is a link that leads out of the folder. `name`
 * must be a bare file name.
 */
export async function openServed(dir: string, name: string): Promise<ServedFile | null> {
  const path = join(dir, name)
  try {
    const [root, real] = await Promise.all([realpath(dir), realpath(path)])
    if (!real.startsWith(root.endsWith(sep) ? root : root + sep)) return null
    // Not a FIFO that nobody writes to: opening that would wait for ever.
    const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    const facts = await file.stat()
    if (!facts.isFile()) {
      await file.close()
      return null
    }
    return {
      sizeBytes: facts.size,
      modifiedAt: facts.mtimeMs,
      read: (start, end) => file.createReadStream({ start, end, highWaterMark: READ_BYTES }),
      close: () => file.close(),
    }
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  }
}

const ABSENT: ReadonlySet<unknown> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'EISDIR',
  'ENXIO',
])

const isAbsence = (error: unknown) =>
  error instanceof Error && 'code' in error && ABSENT.has(error.code)
