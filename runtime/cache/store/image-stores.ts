/** Opens what the cache keeps on disk: its list, the bytes, and the downloads that bring them. */
import { join } from 'node:path'
import { blobKeyOf, keyOf } from '#engine/catalog/rules/cache-entry.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createChanges } from '#kit/host/changes.ts'
import { makeFolder } from '#kit/host/folders.ts'
import { openPartialFiles } from '#kit/host/partial-files.ts'
import { createRecords, selectRecords } from '#kit/host/records.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import { lockState } from '#fleet/state/lock.ts'
import { type BlobIndex, createBlobIndex } from '#cache/blobs/blob-index.ts'
import { createBlobRoom, rememberUse } from '#cache/blobs/blob-room.ts'
import { type Blobs, createBlobs } from '#cache/blobs/blobs.ts'
import { PartRecordSchema } from './download-run.ts'
import { createDecodedImages } from './decoded-images.ts'
import { createDownloads, type Downloads } from './downloads.ts'
import { createIndexChecks, type IndexChecks } from '#engine/image/frame/index-checks.ts'
import { createPins, type Pins } from './pins.ts'

export interface ImageCacheDependencies {
  /** Where people drop files; the cache's own files are in its `.cache`. */
  readonly folder: string
  readonly sources: Pick<Sources, 'open'>
  maxBytes(): number
  /** Interval of the looks at the sources; Infinity: never. */
  upstreamSeconds(): number
  now(): Date
  /** Monotonic milliseconds. */
  elapsed?(): number
  readonly log: { info(message: string): void; warn(message: string): void }
  /** Absent: no frames are compared. */
  readonly frameChecks?: Pick<IndexChecks, 'check'>
  /** Milliseconds; smaller in tests. */
  readonly settleMs?: number
  readonly scanMs?: number
  readonly checkpointBytes?: number
  readonly againMs?: number
  readonly upstreamTickMs?: number
}

export type ImageStores = Awaited<ReturnType<typeof openStores>>

/** `data`: the cache's own folder. */
export async function openStores(parts: ImageCacheDependencies, data: string) {
  const { log, now, elapsed = () => performance.now() } = parts
  const records = createRecords(join(data, 'records'))
  const blobs = await createBlobs(data)
  const changes = createChanges()
  let version = 0
  function announce() {
    version += 1
    changes.announce({ topic: 'catalog' })
  }
  const index = await createBlobIndex(records, announce)
  const partials = await openPartialFiles({
    folder: join(data, 'parts'),
    modes: { folder: 0o700, file: 0o600 },
    suffix: '.part',
    records: selectRecords(records, 'part', PartRecordSchema),
  })
  const decoded = await createDecodedImages(records, { onChange: announce, log })
  const indexes = createIndexChecks(decoded)
  const pins = await createPins(records, elapsed)
  const used = await tidy(blobs, index, now().getTime())
  const room = createBlobRoom({
    blobs,
    index,
    used,
    log,
    maxBytes: parts.maxBytes,
    isBound: (sha256) => isBound(index, pins, sha256),
    writtenBytes: (key) => downloads.find(key)?.growth.bytes ?? 0,
  })
  const downloads: Downloads = createDownloads({
    ...parts,
    blobs,
    partials,
    indexes: parts.frameChecks ?? indexes,
    async finished({ key }, { indexSha256: checkedIndex, ...downloaded }) {
      const before = index.find(key)
      await index.store(key, { ...downloaded, checkedIndex, fetchedAt: now().toISOString() })
      rememberUse(used, downloaded.sha256, now())
      if (before !== null) await room.sweep(before.sha256)
    },
  })
  const lists = { records, changes, announce, version: () => version, partials, elapsed }
  return { ...lists, blobs, index, indexes, decoded, pins, used, room, downloads }
}

/** Throws a Fault `conflict`. */
export async function lockFolder(folder: string, data: string): Promise<Disposable> {
  await makeFolder(data)
  const lock = lockState(join(data, 'lock'))
  if (lock === null) throw alreadyServed(folder)
  return lock
}

/** Returns last uses, the least recent first; a time in the future counts as the oldest. */
async function tidy(blobs: Blobs, index: BlobIndex, now: number): Promise<Map<string, number>> {
  const ageOf = (usedAt: number) => (usedAt > now ? 0 : usedAt)
  const listed = await blobs.list()
  const byAge = listed.toSorted((a, b) => ageOf(a.usedAt) - ageOf(b.usedAt))
  const files = new Map(byAge.map((file) => [file.sha256, file]))
  for (const [key, { sha256, sizeBytes }] of index.sources()) {
    if (files.get(sha256)?.sizeBytes !== sizeBytes) await index.forget(key)
  }
  const named = new Set([...index.sources().values()].map(({ sha256 }) => sha256))
  const used = new Map<string, number>()
  for (const { sha256, usedAt } of files.values()) {
    if (named.has(sha256)) used.set(sha256, usedAt)
    else await blobs.remove(sha256)
  }
  return used
}

const isBound = (index: BlobIndex, pins: Pins, sha256: string): boolean =>
  index.entries().some((entry) => {
    const ref = blobKeyOf(entry.src)
    return ref !== null && pins.has(ref) && index.find(keyOf(entry))?.sha256 === sha256
  })

const alreadyServed = (folder: string) =>
  new Fault('conflict', `another flasher-cache serves ${folder}`, {
    hint: 'Stop it, or choose another folder with [cache] dir or FLASHER_CACHE_DIR.',
  })
