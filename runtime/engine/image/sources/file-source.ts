/** A local image file as a Source; changes during the read are detected. */
import { constants } from 'node:fs'
import { open, stat, type FileHandle } from 'node:fs/promises'
import { Fault } from '#kit/foundation/fault.ts'
import { isMissing, systemCodeOf } from '#kit/foundation/system-error.ts'
import { fileNameOf } from '#kit/net/rules/image-location.ts'
import { brokenAt, readingCancelled } from '#kit/net/rules/network-failure.ts'
import type { Source } from './source.ts'

const CHUNK_BYTES = 1 << 20

/** Rejects with a Fault `input-missing` or `input-invalid`. */
export async function openFileSource(path: string, signal?: AbortSignal): Promise<Source> {
  // Before opening: that waits on a FIFO, and may do something on a device.
  const before = await attempt(path, statExactly(path))
  checkKind(path, before)
  const handle = await attempt(path, open(path, constants.O_RDONLY | constants.O_NONBLOCK))
  try {
    const opened = await handle.stat({ bigint: true })
    checkKind(path, opened)
    return sourceOf({ path, handle, opened, signal })
  } catch (thrown) {
    await handle.close()
    throw thrown
  }
}

interface OpenedFile {
  readonly path: string
  readonly handle: FileHandle
  readonly opened: FileStat
  readonly signal: AbortSignal | undefined
}

type FileStat = Awaited<ReturnType<typeof statExactly>>
const statExactly = (path: string) => stat(path, { bigint: true })

function sourceOf({ path, handle, opened, signal }: OpenedFile): Source {
  const sizeBytes = Number(opened.size)
  const broken = (at: number, reason: string, cause?: unknown) =>
    brokenAt({ name: path, at, sizeBytes }, reason, { cause })

  async function checkContent(at: number) {
    const now = await handle.stat({ bigint: true })
    const isSame = now.size === opened.size && now.mtimeNs === opened.mtimeNs
    if (!isSame) throw broken(at, 'the file changed while it was read')
  }

  async function checkOffset(at: number) {
    const now = await statExactly(path).catch(() => null)
    const isSame = now !== null && now.ino === opened.ino && now.dev === opened.dev
    if (!isSame) throw broken(at, 'the file was replaced or removed while it was read')
  }

  async function fill(into: Buffer, offset: number): Promise<number> {
    const wanted = Math.max(0, Math.min(into.length, sizeBytes - offset))
    let filled = 0
    while (filled < wanted) {
      if (signal?.aborted) throw readingCancelled(path)
      const bytes = await read(into, filled, wanted - filled, offset + filled)
      if (bytes === 0) break
      filled += bytes
    }
    if (filled < wanted) throw broken(offset + filled, 'the file became shorter while it was read')
    return filled
  }

  async function read(into: Buffer, start: number, length: number, offset: number) {
    try {
      const { bytesRead } = await handle.read(into, start, length, offset)
      return bytesRead
    } catch (cause) {
      throw broken(offset, `cannot be read (${codeOf(cause)})`, cause)
    }
  }

  async function readAt(into: Buffer, offset: number): Promise<number> {
    const filled = await fill(into, offset)
    await checkContent(offset)
    return filled
  }

  async function* stream(from = 0) {
    let ahead = Buffer.allocUnsafeSlow(CHUNK_BYTES)
    let spare = Buffer.allocUnsafeSlow(CHUNK_BYTES)
    let at = from
    let pending = fill(ahead, at)
    try {
      for (let bytes = await pending; bytes > 0; bytes = await pending) {
        const chunk = ahead.subarray(0, bytes)
        at += bytes
        ;[ahead, spare] = [spare, ahead]
        pending = fill(ahead, at)
        // Thrown when its turn comes.
        pending.catch(() => {})
        yield chunk
      }
      await checkContent(at)
      await checkOffset(at)
    } finally {
      await Promise.allSettled([pending])
    }
  }

  return {
    name: path,
    fileName: fileNameOf({ kind: 'file', path }),
    path,
    url: null,
    sizeBytes,
    readAt,
    stream,
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

const KINDS = [
  ['a directory', (file: FileStat) => file.isDirectory()],
  ['a block device', (file: FileStat) => file.isBlockDevice()],
  ['a character device', (file: FileStat) => file.isCharacterDevice()],
  ['a named pipe', (file: FileStat) => file.isFIFO()],
  ['a socket', (file: FileStat) => file.isSocket()],
] as const

function checkKind(path: string, file: FileStat): void {
  if (file.isFile()) return
  const kind = KINDS.find(([, matches]) => matches(file))?.[0] ?? 'something else'
  throw new Fault('input-invalid', `image is not a regular file: ${path} is ${kind}`)
}

const attempt = <Value>(path: string, work: Promise<Value>): Promise<Value> =>
  work.catch((cause: unknown) => {
    if (isMissing(cause)) throw new Fault('input-missing', `image not found: ${path}`, { cause })
    const message = `image cannot be opened: ${path} (${codeOf(cause)})`
    throw new Fault('input-invalid', message, { cause })
  })

const codeOf = (thrown: unknown) => systemCodeOf(thrown) ?? 'unknown error'
