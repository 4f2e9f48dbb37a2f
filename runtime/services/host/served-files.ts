/** Files of a folder as a web server needs them: opened once, described, and read in parts. */
import { close, constants, createReadStream, fstat, open, read } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { systemCodeOf } from '../../core/foundation/system-error.ts'

export interface ServedFile {
  readonly sizeBytes: number
  /** Milliseconds since the epoch. */
  readonly modifiedAt: number
  /**
   * The bytes from `from` to `to`, inclusive: in one piece where they are few, else as a stream. The
   * file is closed when they are read or given up.
   */
  read(from: number, to: number): Promise<Uint8Array | Readable>
  /** Only when nothing was read. */
  close(): Promise<void>
}

// Plain numbers: a `FileHandle` that an unread answer leaves behind would end the process.
const [openFd, statFd, closeFd] = [promisify(open), promisify(fstat), promisify(close)]
const readFd = promisify(read)

/** Bytes of one read: fewer turns between disk and network than Node's 64 KiB. */
const READ_BYTES = 256 * 1024
/** Up to here a stream costs more than the bytes. */
const MAX_PIECE = 64 * 1024

/**
 * Null when there is no such regular file, or when it is a link that leads out of the folder. `name`
 * must be a bare file name.
 */
export async function openServed(dir: string, name: string): Promise<ServedFile | null> {
  try {
    const fd = await openInside(dir, join(dir, name))
    if (fd === null) return null
    const facts = await statFd(fd)
    if (!facts.isFile()) {
      await closeFd(fd)
      return null
    }
    return {
      sizeBytes: facts.size,
      modifiedAt: facts.mtimeMs,
      read: async (start, end) =>
        end - start < MAX_PIECE
          ? readPiece(fd, start, end - start + 1)
          : createReadStream('', { fd, start, end, highWaterMark: READ_BYTES }),
      close: () => closeFd(fd),
    }
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  }
}

// Not a FIFO that nobody writes to: opening that would wait for ever.
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW

/** Nearly all are no links, and then there is no way out of the folder. */
async function openInside(dir: string, path: string): Promise<number | null> {
  try {
    return await openFd(path, FLAGS)
  } catch (error) {
    if (systemCodeOf(error) !== 'ELOOP') throw error
  }
  const [root, real] = await Promise.all([realpath(dir), realpath(path)])
  return real.startsWith(root.endsWith(sep) ? root : root + sep) ? openFd(real, FLAGS) : null
}

async function readPiece(fd: number, from: number, length: number): Promise<Uint8Array> {
  try {
    const { bytesRead, buffer } = await readFd(fd, Buffer.allocUnsafe(length), 0, length, from)
    // One read of a regular file gives all there is.
    if (bytesRead < length) throw new Error('the file became shorter while it was read')
    return buffer
  } finally {
    await closeFd(fd)
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

const isAbsence = (error: unknown) => ABSENT.has(systemCodeOf(error))
