/** The cache as a whole: its images, its downloads, and every operation on it. */
import { join } from 'node:path'
import {
  type CacheEntry,
  keyOf,
  parseCacheEntry,
  secretSourceOf,
} from '#engine/catalog/rules/cache-entry.ts'
import { decideArch, decideFormat } from '#engine/catalog/rules/catalog.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { FieldError } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { awaitEnding } from '#kit/host/watch.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { BlobIndex } from '#cache/blobs/blob-index.ts'
import { createBlobReaders } from './blob-readers.ts'
import { listRows } from './cache-rows.ts'
import { createCaptures } from '#cache/captures/captures.ts'
import type { Download } from './downloads.ts'
import { createDroppedFiles } from './dropped-files.ts'
import {
  type ImageCacheDependencies,
  type ImageStores,
  lockFolder,
  openStores,
} from './image-stores.ts'
import { startRecalling } from './decoded-images.ts'
import { createUploads } from '#cache/arrivals/uploads.ts'
import { DATA_FOLDER } from './data-folder.ts'
import { startUpstreamChecks } from './upstream-checks.ts'

export type ImageCache = Awaited<ReturnType<typeof createImageCache>>

type AddRefusal =
  | { readonly why: 'invalid'; readonly errors: readonly FieldError[] }
  | { readonly why: 'taken'; readonly name: string }

/**
 * Resumes interrupted downloads. Rejects with a Fault `conflict` where another process serves the
 * folder.
 */
export async function createImageCache(parts: ImageCacheDependencies) {
  const { folder, log, now } = parts
  const data = join(folder, DATA_FOLDER)
  const lock = await lockFolder(folder, data)
  const stores = await openStores(parts, data)
  const { records, changes, index, blobs, room, pins, used, indexes, decoded, downloads } = stores
  const { elapsed } = stores
  const dropped = await createDroppedFiles({
    ...parts,
    records,
    indexes,
    onChange: stores.announce,
  })
  const readers = createBlobReaders({ blobs, index, room, downloads, dropped, used, now })
  await resume(stores)

  const ending = new AbortController()
  const rows = () => listRows({ index, downloads, dropped, used, pins, decoded })
  const isTaken = (name: string) => hasEntry(index, name) || dropped.find(name) !== null
  const receiving = { data, records, room, dropped, indexes, isTaken, now, elapsed, log }
  const uploads = await createUploads(receiving)
  const named = { ...receiving, isBound: pins.hasFile }
  const captures = await createCaptures(named)
  const recalling = startRecalling({ index, blobs, indexes, log })
  const upstreamChecks = startUpstreamChecks({ ...parts, index, downloads })

  return {
    ...readers,
    rows,
    /** Changes with the list of ready images. */
    version: stores.version,
    uploads,
    captures,
    space: room.space,
    pin: pins.pin,
    listLabels: pins.listLabels,
    scan: dropped.scan,
    /** Also resolves when the signal is aborted, or at the end. */
    awaitNews: (isNews: () => boolean, signal: AbortSignal) =>
      awaitNews(changes, isNews, AbortSignal.any([signal, ending.signal])),
    endWaiting: () => ending.abort(),
    /** `body`: of `POST /catalog/entries`. Downloads nothing yet. */
    async add(body: unknown): Promise<Result<CacheEntry, AddRefusal>> {
      const entry = parseCacheEntry(body, isTaken)
      if (!entry.ok) return refuse({ why: 'invalid', errors: entry.refusal })
      const { name } = entry.value
      if (isTaken(name)) return refuse({ why: 'taken', name })
      await index.saveEntry(entry.value)
      await adopt(stores, entry.value)
      return accept(entry.value)
    },
    /** Ends its download too; bytes that another entry shares stay. Throws a Fault. */
    async remove(name: string, options: { readonly force: boolean }) {
      const row = rows().find(({ entry }) => entry.name === name)
      if (row === undefined) throw unknown(name)
      if (row.isPinned && !options.force) throw inUse(name)
      if (row.kind === 'file') await dropped.remove(row.fileName)
      else await removeEntry(stores, name)
    },
    /** Joins a running one; null: it is stored already (`force` fetches it anew). */
    download: async (name: string, { force }: { readonly force: boolean }) =>
      start(stores, findEntry(index, name), force),
    cancel: (name: string) => downloads.cancel(keyOf(findEntry(index, name))),
    failureOf: (name: string) => downloads.failureOf(keyOf(findEntry(index, name))),
    async [Symbol.asyncDispose]() {
      for (const part of [upstreamChecks, recalling, downloads, uploads, captures, dropped])
        await part[Symbol.asyncDispose]()
      lock[Symbol.dispose]()
    },
  }
}

async function awaitNews(
  changes: Changes,
  isNews: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = changes.listen(() => {
    if (isNews()) resolve()
  })
  await Promise.race([promise, awaitEnding(signal)])
  stop()
}

const hasEntry = (index: BlobIndex, name: string) =>
  index.entries().some((entry) => entry.name === name)

function start(stores: ImageStores, entry: CacheEntry, force: boolean): Download | null {
  const key = keyOf(entry)
  const { index, downloads, room } = stores
  if (!force && index.find(key) !== null) return null
  const names = [entry.name, entry.resolved_src, entry.src]
  const download = downloads.start({
    key,
    url: secretSourceOf(entry),
    sha256: entry.sha256,
    arch: decideArch(entry.arch, names),
    name: entry.name,
    format: IMAGE_FORMATS.find((known) => known === decideFormat(entry.format, names)) ?? null,
    anyContent: entry.any_content ?? false,
    makeRoom: (bytes) => room.make(key, bytes),
  })
  void download.ended.finally(() => room.release(key))
  return download
}

/** The bytes may be here already, from another address. */
async function adopt({ index }: ImageStores, entry: CacheEntry): Promise<void> {
  const key = keyOf(entry)
  if (entry.sha256 === null || index.find(key) !== null) return
  const same = [...index.sources().values()].find(({ sha256 }) => sha256 === entry.sha256)
  if (same !== undefined) await index.store(key, { ...same, version: null })
}

/** Two entries may share a source, and two sources the bytes. */
async function removeEntry(stores: ImageStores, name: string): Promise<void> {
  const { index, downloads, room } = stores
  const key = keyOf(findEntry(index, name))
  await index.removeEntry(name)
  if (index.entries().some((entry) => keyOf(entry) === key)) return
  await downloads.cancel(key)
  downloads.forget(key)
  const stored = index.find(key)
  if (stored === null) return
  await index.forget(key)
  await room.sweep(stored.sha256)
}

/** And removes parts of entries that are gone. */
async function resume(stores: ImageStores): Promise<void> {
  const { partials, index } = stores
  // The first wins where several entries have one source.
  const entries = new Map(
    index
      .entries()
      .toReversed()
      .map((entry) => [keyOf(entry), entry]),
  )
  const parts = new Map((await partials.list()).map(({ name, record }) => [name, record]))
  await partials.sweep((key) => entries.has(key) && parts.has(key))
  for (const [key, { isWanted }] of parts) {
    const entry = entries.get(key)
    if (entry !== undefined && isWanted) start(stores, entry, true)
  }
}

function findEntry(index: BlobIndex, name: string): CacheEntry {
  const entry = index.entries().find((one) => one.name === name)
  if (entry === undefined) throw unknown(name)
  return entry
}

const unknown = (name: string) => new Fault('not-found', `there is no entry named ${name}`)
const inUse = (name: string) =>
  new Fault('conflict', `machines are bound to ${name}`, {
    hint: 'Bind them to another image first, or remove it anyway (force).',
  })
