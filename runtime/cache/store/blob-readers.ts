/** Opens the bytes of images for requests: complete ones, files put into the folder, and running downloads. */
import type { FileHandle } from 'node:fs/promises'
import {
  blobKeyOf,
  type CacheEntry,
  keyOf,
  parseFileSource,
  parseFileUrl,
} from '#engine/catalog/rules/cache-entry.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { type BlobIndex, type BlobRoom, type Blobs, rememberUse } from '#cache/blobs/blobs.ts'
import type { Download, Downloads } from './downloads.ts'
import type { DroppedFile, DroppedFiles } from './dropped-files.ts'

export interface BlobReader extends AsyncDisposable {
  /** Null: unknown yet. */
  readonly sizeBytes: number | null
  /** While the bytes still come, the expected digest. */
  readonly sha256: string | null
  /** Waits; 0: the end. The last byte comes once all are verified; throws if they are wrong. */
  read(into: Buffer, offset: number, signal: AbortSignal): Promise<number>
}

interface BlobReadersDependencies {
  readonly blobs: Blobs
  readonly index: BlobIndex
  readonly room: BlobRoom
  readonly downloads: Downloads
  readonly dropped: DroppedFiles
  readonly used: Map<string, number>
  now(): Date
}

export function createBlobReaders(parts: BlobReadersDependencies) {
  const { index, downloads, dropped } = parts

  /** By its source or by the address to which that was resolved. */
  function findEntry(source: string): CacheEntry | null {
    const key = blobKeyOf(source)
    return key === null ? null : index.findEntry(key)
  }

  async function openSource(source: string): Promise<BlobReader | null> {
    const entry = findEntry(source)
    const key = entry === null ? blobKeyOf(source) : keyOf(entry)
    if (key === null) return null
    const download = downloads.find(key)
    const reader = (await openWhole(parts, key)) ?? (await openGrowing(parts, download, entry))
    if (reader !== null) return reader
    // The part is gone: the download is just completing or has failed.
    await download?.ended
    return openWhole(parts, key)
  }

  async function openFile(name: string): Promise<BlobReader | null> {
    const file = dropped.find(name)
    const isOffered = file !== null && file.sha256 !== null && file.refusal === null
    return isOffered ? readDropped(dropped, file, await dropped.open(file)) : null
  }

  return {
    findEntry,
    openFile,
    /** `source`: any spelling of the address. Null: not here and not on its way. */
    async open(source: string, ownHost: string) {
      const found = await openSource(source)
      if (found !== null) return found
      const name = parseFileSource(source) ?? parseFileUrl(source, ownHost)
      return name === null ? null : openFile(name)
    },
  }
}

/** Keeps the blob from being removed while it is open. Null: not here. */
async function openWhole(
  parts: Pick<BlobReadersDependencies, 'blobs' | 'index' | 'room' | 'used' | 'now'>,
  key: string,
): Promise<BlobReader | null> {
  const { blobs, index, room, used, now } = parts
  const stored = index.find(key)
  if (stored === null) return null
  const { sha256, sizeBytes } = stored
  const hold = room.hold(sha256)
  const time = now()
  try {
    const handle = await blobs.open(sha256, time)
    rememberUse(used, sha256, time)
    return {
      sizeBytes,
      sha256,
      read: (into, offset) => readSome(handle, into, offset, sizeBytes - offset),
      async [Symbol.asyncDispose]() {
        hold[Symbol.dispose]()
        await handle.close()
      },
    }
  } catch (thrown) {
    hold[Symbol.dispose]()
    if (!isNotFound(thrown)) throw thrown
    await index.forget(key) // The file was removed from outside.
    return null
  }
}

async function openGrowing(
  { downloads }: BlobReadersDependencies,
  download: Download | null,
  entry: CacheEntry | null,
): Promise<BlobReader | null> {
  if (download === null) return null
  const handle = await downloads.follow(download).catch((thrown: unknown) => {
    if (isNotFound(thrown)) return null
    throw thrown
  })
  if (handle === null) return null
  const { growth } = download
  return {
    sizeBytes: growth.total,
    sha256: entry?.sha256 ?? null,
    async read(into, offset, signal) {
      const bytes = await growth.available(offset, signal)
      return bytes === 0 ? 0 : readSome(handle, into, offset, bytes)
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

function readDropped(dropped: DroppedFiles, file: DroppedFile, handle: FileHandle): BlobReader {
  const { sizeBytes } = file.stamp
  return {
    sizeBytes,
    sha256: file.sha256,
    async read(into, offset) {
      const bytes = await readSome(handle, into, offset, sizeBytes - offset)
      // Somebody may be writing into the file: the end is held back until that is ruled out.
      const isEnd = offset + bytes >= sizeBytes
      if (isEnd && !(await dropped.isUnchanged(file, handle))) {
        throw new Fault('source-broken', `${file.stamp.name} was changed while it was read`)
      }
      return bytes
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

async function readSome(handle: FileHandle, into: Buffer, offset: number, most: number) {
  const wanted = Math.min(into.length, most)
  if (wanted <= 0) return 0
  const { bytesRead } = await handle.read(into, 0, wanted, offset)
  if (bytesRead === 0)
    throw new Fault('source-broken', 'the image became shorter while it was read')
  return bytesRead
}

const isNotFound = (thrown: unknown) => thrown instanceof Fault && thrown.code === 'not-found'
