/** Reads an image that is being fetched from the followed cache: what has come from the disk, the rest from there. */
import type { FileHandle } from 'node:fs/promises'
import { Fault } from '../../kit/foundation/fault.ts'
import { settle } from '../../kit/host/watch.ts'
import type { BlobReader } from '../store/blob-readers.ts'
import type { Download, Downloads } from '../store/downloads.ts'
import type { Relay } from './relay.ts'

/** A reader waits for bytes that are so near, and asks the followed cache for those behind them. */
const NEAR_BYTES = 16 * 1024 * 1024
/** Milliseconds that a reader waits for a download to begin. */
const PATIENCE_MS = 2000

interface FollowReaderOptions {
  readonly downloads: Pick<Downloads, 'follow'>
  /** Null: it is not kept here. */
  readonly download: Download | null
  readonly relay: Relay
  readonly sha256: string | null
  readonly sizeBytes: number | null
}

/** Creates what one request reads. */
export function createFollowReader(options: FollowReaderOptions): BlobReader {
  const { downloads, download, relay, sha256, sizeBytes } = options
  let handle: FileHandle | null = null
  let isKept = download !== null
  const opened = download === null ? Promise.resolve() : open(download)

  async function open(from: Download) {
    try {
      handle = await downloads.follow(from)
    } catch {
      isKept = false // It failed at its start; who asks next learns why.
    }
  }

  /** The file with what has come, where that is not far before the offset; null: it is. */
  async function awaitFile(from: Download, offset: number): Promise<FileHandle | null> {
    if (handle === null && !from.isQueued) await settle(opened, PATIENCE_MS)
    return offset > from.growth.bytes + NEAR_BYTES ? null : handle
  }

  /** Null: the followed cache is to be asked. */
  async function readKept(into: Buffer, offset: number, signal: AbortSignal) {
    const file = isKept && download !== null ? await awaitFile(download, offset) : null
    if (file === null || download === null) return null
    try {
      const bytes = await download.growth.available(offset, signal)
      if (bytes === 0) return 0
      return (await file.read(into, 0, Math.min(into.length, bytes), offset)).bytesRead
    } catch (thrown) {
      if (signal.aborted || isLie(thrown)) throw thrown
      isKept = false // Its disk is full, say: the bytes pass through.
      return null
    }
  }

  return {
    sizeBytes,
    sha256,
    read: async (into, offset, signal) =>
      (await readKept(into, offset, signal)) ?? (await relay.read(into, offset, signal)),
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]()
      // Where the download has not begun, its file is closed when it is opened.
      void opened.then(() => handle?.close()).catch(() => undefined)
    },
  }
}

/** Tells whether bytes came that are not those of their digest. */
export const isLie = (thrown: unknown): boolean =>
  thrown instanceof Fault && thrown.code === 'digest-mismatch'
