/** An opened image source: its bytes in order or at an offset, wherever it is stored; a file; counting what is read. */
import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { decodeList, parseSha256For } from '#kit/foundation/checksum.ts'
import { Fault, renderError, isMissing, systemCodeOf } from '#kit/foundation/fault.ts'
import type { Sent } from '#kit/net/rules/http-range.ts'
import { fileNameOf } from '#kit/net/rules/image-location.ts'
import { brokenAt, readingCancelled } from '#kit/net/rules/network-failure.ts'
import type { SourceShare } from '../rules/frame-map.ts'

/** Offsets and lengths are bytes. */
export interface Source extends AsyncDisposable {
  /** To be shown: a path, `-`, or a URL without credentials. */
  readonly name: string
  /** The last part of path or URL, which shows the format. */
  readonly fileName: string
  readonly path: string | null
  /** To be shown only: without credentials. */
  readonly url: string | null
  /** Null: the source does not say. */
  readonly sizeBytes: number | null
  /** An ETag or a date. */
  readonly version?: string | null
  /** Of all bytes, lower case, as the source promises. */
  readonly sha256?: string
  /** Of its index, lower case, by whoever promises `sha256`. */
  readonly indexSha256?: string
  /** All promises were named by a digest, too. */
  readonly isPinned?: boolean
  readonly sent?: Sent
  readonly isNameless?: boolean
  /** As the server says now: it may rule the bytes out, and vouches for nothing. */
  readonly servedSha256?: string
  /** Fewer bytes only at the end; several calls at once. Null: no random access. */
  readonly readAt: ((into: Buffer, offset: number) => Promise<number>) | null
  /**
   * Recovers what it can, else throws a Fault. Once for stdin. A chunk's memory may be reused at
   * the next one.
   */
  stream(from?: number): AsyncIterable<Buffer>
  /** Goes on at another place where one breaks: only for who compares the digest of all bytes. */
  joined?(from?: number): AsyncIterable<Buffer>
  /** In the order of asking; absent: here alone. */
  readonly places?: readonly ListedSource[]
  /**
   * Each place by itself with the patience of an only source, this one's first: for who reads all
   * of it from one. Absent: an only source.
   */
  readonly alone?: readonly (() => Promise<Source>)[]
  /** Absent: all came from here. */
  shares?(): readonly SourceShare[]
}

export type SeekableSource = Source & { readonly readAt: NonNullable<Source['readAt']> }

export interface ListedSource extends Pick<SeekableSource, 'name' | 'sizeBytes' | 'readAt'> {
  taken(bytes: number): void
  /** Notes why what it sent was of no use, or why it sent nothing. */
  refused(why: unknown): void
}

export interface OpenOptions {
  /** Ends every wait with a Fault `cancelled`. */
  readonly signal?: AbortSignal | undefined
  /** For a registry that holds several; null: the only one, else this machine's. */
  readonly arch?: string | null | undefined
  /** Another place has the same bytes: this one is given up soon, even when it is only slow. */
  readonly isHasty?: boolean
  /** A new address for a signed one that has expired. */
  readonly renew?: ((location: string) => Promise<string | null>) | undefined
}

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

/** No list of digests needs nearly so much. */
const MAX_BYTES = 1024 * 1024

/** Lower case; null: no `<image>.sha256`. A Fault `input-invalid` if it lacks this image. */
export async function readSidecar(imagePath: string): Promise<string | null> {
  const path = `${imagePath}.sha256`
  const text = await readText(path)
  if (text === null) return null
  const digest = parseSha256For(text, basename(imagePath))
  if (digest.ok) return digest.value
  const why = {
    'not-listed': `${path} does not list ${basename(imagePath)}`,
    'not-a-checksum-list': `${path} is not a list of SHA-256 digests`,
  }[digest.refusal]
  throw new Fault('input-invalid', why, {
    hint: 'Give the right digest with --sha256, or remove that file.',
  })
}

async function readText(path: string): Promise<string | null> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const into = Buffer.alloc(MAX_BYTES + 1)
    const { bytesRead } = await file.read(into, 0, into.length, 0)
    return decodeList(into.subarray(0, Math.min(bytesRead, MAX_BYTES)))
  } catch (cause) {
    // A name of the greatest length has no sidecar.
    if (isMissing(cause) || systemCodeOf(cause) === 'ENAMETOOLONG') return null
    throw new Fault('input-invalid', `${path} cannot be read: ${renderError(cause)}`, { cause })
  }
}

export type Counted = ReturnType<typeof countSource>

/**
 * Wraps a source, so that its bytes are counted. With `sha256` the bytes must come in order: random
 * access is taken away, and they may come from several places, for their digest is compared.
 * `timed` wraps each wait for bytes.
 */
export function countSource(
  source: Source,
  sha256: string | null,
  timed: <Value>(wait: Promise<Value>) => Promise<Value> = (wait) => wait,
) {
  const { readAt, places } = source
  const here = places?.[0]
  const hash = sha256 === null ? null : startHash()
  let bytesRead = 0
  async function countRead(readNext: NonNullable<Source['readAt']>, into: Buffer, offset: number) {
    const bytes = await timed(readNext(into, offset))
    bytesRead += bytes
    return bytes
  }
  const joined = hash === null ? undefined : source.joined
  const counted: Source = {
    ...source,
    readAt:
      readAt === null || hash !== null ? null : (into, offset) => countRead(readAt, into, offset),
    async *stream(from) {
      const chunks = joined?.(from) ?? source.stream(from)
      for await (const bytes of timeEach(chunks, timed)) {
        hash?.update(bytes)
        bytesRead += bytes.length
        if (joined === undefined) here?.taken(bytes.length)
        yield bytes
      }
    },
    ...(places === undefined
      ? {}
      : {
          places: places.map((place) => ({
            ...place,
            sizeBytes: source.sizeBytes,
            readAt: (into: Buffer, offset: number) => countRead(place.readAt, into, offset),
          })),
        }),
  }
  return {
    source: counted,
    bytesRead: () => bytesRead,
    /** Throws a Fault `digest-mismatch` unless the bytes that went by are the ones asked for. */
    checkDigest() {
      if (hash !== null) compareDigest(source, hash.digest('hex'), sha256)
    },
  }
}

/** Throws a Fault `digest-mismatch` for another digest than was asked for; null: not known. */
export function compareDigest({ name }: Source, found: string | null, sha256: string | null): void {
  if (sha256 === null || found === null || found === sha256) return
  const words = `its sha256 is ${found}, not ${sha256}`
  throw new Fault('digest-mismatch', `${name} is not the expected image: ${words}`, {
    hint: 'Download it again, or correct the checksum.',
  })
}

// Loaded only for an image whose digest is known: that takes milliseconds.
const startHash = () => process.getBuiltinModule('node:crypto').createHash('sha256')

async function* timeEach(
  chunks: AsyncIterable<Buffer>,
  timed: <Value>(wait: Promise<Value>) => Promise<Value>,
): AsyncGenerator<Buffer> {
  const each = chunks[Symbol.asyncIterator]()
  try {
    for (let next = await timed(each.next()); next.done !== true; next = await timed(each.next())) {
      yield next.value
    }
  } finally {
    await each.return?.()
  }
}

/**
 * Opens the first of the source's places whose bytes have the digest, with the patience of an only
 * source: nothing compares what is read out of order, so nothing of it may come from elsewhere later.
 * `sha256` null: it is not known, and another place may have another image. Rejects with
 * what the last place failed for, a Fault `digest-mismatch` where it is another image.
 */
export async function openUnordered(
  source: Source,
  sha256: string | null,
  signal: AbortSignal,
): Promise<Source> {
  const openings = source.alone ?? [async () => source]
  const most = sha256 === null ? 1 : openings.length
  for (const [at, openNext] of openings.entries()) {
    try {
      const place = await openNext()
      if (sha256 !== null) await checkDigest(place, sha256, signal)
      return place
    } catch (thrown) {
      if (signal.aborted || at >= most - 1) throw thrown
    }
  }
  return source
}

async function checkDigest(source: Source, sha256: string, signal: AbortSignal) {
  const counted = countSource(source, sha256)
  try {
    for await (const _ of counted.source.stream()) signal.throwIfAborted()
    counted.checkDigest()
  } catch (thrown) {
    for (const place of source.places ?? []) place.refused(thrown)
    throw thrown
  }
}
