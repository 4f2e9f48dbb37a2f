/** Opens files of a folder for a web server: described once, read in parts. */
import { close, constants, fstat, open, read } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { promisify } from 'node:util'
import { systemCodeOf } from '#kit/foundation/fault.ts'

export interface ServedFile {
  /** Null: not known yet. */
  readonly sizeBytes: number | null
  /** Null: it may still become any bytes. */
  readonly etag: string | null
  /** The time as the header spells it. */
  readonly lastModified: string | null
  /** The response's own headers, besides the usual ones. */
  readonly headers?: Readonly<Record<string, string>>
  /** Fills from `offset` on; 0 at the end. The signal says that nobody listens any more. */
  read(into: Buffer, offset: number, signal: AbortSignal): Promise<number>
  /** Another one for each change of its bytes, as exact as the clock of the file system; absent: it has none. */
  stamp?(): Promise<string>
  close(): Promise<void>
}

// Plain numbers: a `FileHandle` that an unread answer leaves behind would end the process.
const [openFd, statFd, closeFd] = [promisify(open), promisify(fstat), promisify(close)]
const readFd = promisify(read)

/**
 * Opens a regular file; null when there is none, or when it is a link that leads out of the folder.
 * `name` must be a bare file name. The caller closes the file. Rejects with Node's error where the
 * file cannot be read.
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
    const { size, mtimeMs } = facts
    return {
      sizeBytes: size,
      etag: `"${size.toString(36)}-${Math.trunc(mtimeMs * 1000).toString(36)}"`,
      lastModified: new Date(Math.floor(mtimeMs / 1000) * 1000).toUTCString(),
      async read(into, offset) {
        const { bytesRead } = await readFd(fd, into, 0, into.byteLength, offset)
        return bytesRead
      },
      async stamp() {
        const now = await statFd(fd, { bigint: true })
        return [now.ino, now.size, now.mtimeNs, now.ctimeNs].join('-')
      },
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

const ABSENT: ReadonlySet<unknown> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'EISDIR',
  'ENXIO',
])

const isAbsence = (error: unknown) => ABSENT.has(systemCodeOf(error))
