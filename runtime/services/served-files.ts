/** Files of a folder as a web server needs them: opened once, described, and read in parts. */
import { close, constants, createReadStream, fstat, open } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'

export interface ServedFile {
  readonly sizeBytes: number
  /** Milliseconds since the epoch. */
  readonly modifiedAt: number
  /** The bytes from `from` to `to`, inclusive; the file is closed when they are read or given up. */
  read(from: number, to: number): Readable
  /** Only when nothing was read. */
  close(): Promise<void>
}

// Plain numbers: a `FileHandle` that an unread answer leaves behind would end the process.
const [openFd, statFd, closeFd] = [promisify(open), promisify(fstat), promisify(close)]

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
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
    const fd = await openFd(real, flags)
    const facts = await statFd(fd)
    if (!facts.isFile()) {
      await closeFd(fd)
      return null
    }
    return {
      sizeBytes: facts.size,
      modifiedAt: facts.mtimeMs,
      read: (start, end) => createReadStream('', { fd, start, end, highWaterMark: READ_BYTES }),
      close: () => closeFd(fd),
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
