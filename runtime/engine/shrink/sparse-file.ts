/** A file with holes that remembers where it holds data, so that nobody has to read its zeros. */
import { type FileHandle, open, readdir, statfs } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { isAllZero, type Range, ZERO_GRAIN } from '#engine/disk/rules/extents.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'

export type SparseFile = Awaited<ReturnType<typeof createSparseFile>>

/** Of the folder in TMPDIR that holds what is made on the way. */
export const PREFIX = 'flasher-shrink-'
const LEFT = 'If no other command is running, remove what killed ones left there:'

const PIECE_BYTES = 1024 * 1024
/** Of free space that is left to others. */
const LEFT_BYTES = 64 * 1024 * 1024

/** Nothing may be at `path`. Writes go from its beginning to its end. */
export async function createSparseFile(path: string) {
  const file = await open(path, 'wx+', 0o600)
  return sparseOver(path, file)
}

function sparseOver(path: string, file: FileHandle) {
  const data: { offset: number; bytes: number }[] = []
  let [written, checked] = [0, 0]

  async function write(bytes: Buffer, offset: number) {
    for (let at = 0; at < bytes.length;) {
      at += (await file.write(bytes, at, bytes.length - at, offset + at)).bytesWritten
    }
    const last = data.at(-1)
    if (last !== undefined && last.offset + last.bytes === offset) last.bytes += bytes.length
    else data.push({ offset, bytes: bytes.length })
    written += bytes.length
    if (written - checked < LEFT_BYTES / 2) return
    checked = written
    await checkRoom(path, 0)
  }

  return {
    path,
    /** Every other byte is zero. */
    data: data as readonly Range[],
    /** Bytes of them. */
    dataBytes: () => written,
    /** Zeros become holes. */
    async put(bytes: Buffer, offset: number): Promise<void> {
      for (let at = 0; at < bytes.length; at += ZERO_GRAIN) {
        const grain = bytes.subarray(at, at + ZERO_GRAIN)
        if (!isAllZero(grain)) await write(grain, offset + at)
      }
    },
    /** Whatever lies there. */
    patch: write,
    /** Always whole: zeros behind its end. */
    async read({ offset, bytes }: Range): Promise<Buffer> {
      const into = Buffer.alloc(bytes)
      for (let at = 0; at < bytes;) {
        const { bytesRead } = await file.read(into, at, bytes - at, offset + at)
        if (bytesRead === 0) break
        at += bytesRead
      }
      return into
    },
    truncate: (bytes: number) => file.truncate(bytes),
    sync: () => file.sync(),
    close: () => file.close(),
    [Symbol.asyncDispose]: () => file.close(),
  }
}

/** What of a range holds data. */
export function* listData(data: readonly Range[], { offset, bytes }: Range): Generator<Range> {
  for (const piece of data) {
    const from = Math.max(offset, piece.offset)
    const to = Math.min(offset + bytes, piece.offset + piece.bytes)
    if (from < to) yield { offset: from, bytes: to - from }
  }
}

/** Its data only. */
export async function copyRange(
  from: SparseFile,
  range: Range,
  into: SparseFile,
  to: number,
  signal: AbortSignal,
): Promise<void> {
  for (const { offset, bytes } of listData(from.data, range)) {
    for (let at = 0; at < bytes; at += PIECE_BYTES) {
      signal.throwIfAborted()
      const piece = { offset: offset + at, bytes: Math.min(PIECE_BYTES, bytes - at) }
      await into.put(await from.read(piece), to + piece.offset - range.offset)
    }
  }
}

/** A file that a tool has worked on, read from its beginning to `bytes`. */
export async function copyFile(
  path: string,
  bytes: number,
  into: SparseFile,
  to: number,
  signal: AbortSignal,
): Promise<void> {
  await using file = await open(path)
  const piece = Buffer.alloc(PIECE_BYTES)
  for (let at = 0; at < bytes;) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(piece, 0, Math.min(PIECE_BYTES, bytes - at), at)
    if (bytesRead === 0) break
    await into.put(piece.subarray(0, bytesRead), to + at)
    at += bytesRead
  }
}

/** A Fault `storage-full` where so many bytes do not fit beside `path`. */
export async function checkRoom(path: string, bytes: number): Promise<void> {
  const folder = dirname(path)
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (free >= bytes + LEFT_BYTES) return
  const wanted = renderSize(bytes + LEFT_BYTES)
  // Those of commands that were killed, and of others that run.
  const names = await readdir(dirname(folder))
  const others = names.filter((name) => name.startsWith(PREFIX) && name !== basename(folder))
  const left = others.length === 0 ? '' : ` ${LEFT} ${others.slice(0, 5).join(', ')}.`
  throw new Fault(
    'storage-full',
    `shrinking needs ${wanted} in ${folder}, ${renderSize(free)} are free`,
    { hint: `Name a folder with more room in TMPDIR.${left}` },
  )
}
