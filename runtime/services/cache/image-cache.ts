/** The cache as a whole: its images, its downloads, and every operation on it. */
import { join } from 'node:path'
import {
  blobKeyOf,
  type CacheEntry,
  keyOf,
  parseCacheEntry,
  secretSourceOf,
} from '../../core/catalog/cache-entry.ts'
import { decideArch } from '../../core/catalog/catalog.ts'
import { Fault } from '../../core/foundation/fault.ts'
import type { FieldError } from '../../core/foundation/field-error.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'
import { type BlobIndex, createBlobIndex } from './blob-index.ts'
import { createBlobReaders } from './blob-readers.ts'
import { type BlobRoom, createBlobRoom } from './blob-room.ts'
import { type Blobs, createBlobs } from './blobs.ts'
import { createIndexChecks } from './index-checks.ts'
import { readBootId } from '../host/boot-id.ts'
import { listRows } from './cache-rows.ts'
import { createCaptures } from './captures.ts'
import { createDownloads, type Download, type Downloads } from './downloads.ts'
import { createDroppedFiles } from './dropped-files.ts'
import { makeFolder } from '../host/folders.ts'
import { PartNoteSchema, type PartNote } from './part-records.ts'
import { createPins, type Pins } from './pins.ts'
import { createRecords, selectRecords, type RecordsOf } from '../host/records.ts'
import { startStoredChecks } from './stored-checks.ts'
import type { Sources } from '../image/sources.ts'
import { lockState } from '../state/lock.ts'
import { createUploads } from './uploads.ts'

export type ImageCache = Awaited<ReturnType<typeof createImageCache>>

type AddRefusal =
  | { readonly why: 'invalid'; readonly errors: readonly FieldError[] }
  | { readonly why: 'taken'; readonly name: string }

interface ImageCacheDependencies {
  /** The folder that people drop files into; everything else lies in `.cache` there. */
  readonly folder: string
  readonly sources: Pick<Sources, 'open'>
  maxBytes(): number
  now(): Date
  readonly log: { info(message: string): void; warn(message: string): void }
  /** Milliseconds; smaller in tests. */
  readonly settleMs?: number
  readonly scanMs?: number
  readonly checkpointBytes?: number
  readonly againMs?: number
}

export const DATA_FOLDER = '.cache'

/** A Fault `conflict` where another process serves the folder already. */
export async function createImageCache(parts: ImageCacheDependencies) {
  const { folder, log, now } = parts
  const data = join(folder, DATA_FOLDER)
  const lock = await lockFolder(folder, data)
  const records = createRecords(join(data, 'records'))
  const blobs = await createBlobs(data)
  const index = await createBlobIndex(records)
  const notes = selectRecords(records, 'part', PartNoteSchema)
  const indexes = createIndexChecks()
  const pins = await createPins(records, now)
  const used = await tidy(blobs, index)
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
    notes,
    indexes,
    bootId: await readBootId(),
    async finished({ key }, { indexSha256: checkedIndex, ...downloaded }) {
      const before = index.find(key)
      await index.store(key, { ...downloaded, checkedIndex, fetchedAt: now().toISOString() })
      used.set(downloaded.sha256, now().getTime())
      if (before !== null) await room.sweep(before.sha256)
    },
  })
  const dropped = await createDroppedFiles({ ...parts, records, indexes })
  const readers = createBlobReaders({ blobs, index, room, downloads, dropped, used, now })
  const stores = { index, blobs, room, downloads }
  await resume(stores, await listWanted(blobs, notes))

  const rows = () => listRows({ index, downloads, dropped, used, pins })
  const isTaken = (name: string) => hasEntry(index, name) || dropped.find(name) !== null
  const receiving = { data, records, room, dropped, indexes, isTaken, now, log }
  const uploads = await createUploads(receiving)
  const captures = await createCaptures(receiving)
  const checks = startStoredChecks({ index, blobs, room, indexes, log })

  return {
    ...readers,
    rows,
    uploads,
    captures,
    space: room.space,
    pin: pins.pin,
    scan: dropped.scan,
    /** The body of `POST /catalog/entries`; nothing is downloaded yet. */
    async add(body: unknown): Promise<Result<CacheEntry, AddRefusal>> {
      const entry = parseCacheEntry(body, isTaken)
      if (!entry.ok) return refuse({ why: 'invalid', errors: entry.refusal })
      const { name } = entry.value
      if (isTaken(name)) return refuse({ why: 'taken', name })
      await index.saveEntry(entry.value)
      await adopt(stores, entry.value)
      return accept(entry.value)
    },
    /** Ends its download too; bytes that no other entry shares go. A Fault where it cannot be. */
    async remove(name: string, options: { readonly force: boolean }) {
      const row = rows().find(({ entry }) => entry.name === name)
      if (row === undefined) throw unknown(name)
      if (row.isPinned && !options.force) throw inUse(name)
      if (row.kind === 'file') await dropped.remove(row.fileName)
      else await removeEntry(stores, name)
    },
    /** Joins the one under way; null: it is there already (`force` fetches it anew). */
    download: async (name: string, { force }: { readonly force: boolean }) =>
      start(stores, findEntry(index, name), force),
    cancel: (name: string) => downloads.cancel(keyOf(findEntry(index, name))),
    /** Why the latest download of an entry failed. */
    failureOf: (name: string) => downloads.failureOf(keyOf(findEntry(index, name))),
    async [Symbol.asyncDispose]() {
      for (const part of [checks, downloads, uploads, captures, dropped])
        await part[Symbol.asyncDispose]()
      lock[Symbol.dispose]()
    },
  }
}

async function lockFolder(folder: string, data: string): Promise<Disposable> {
  await makeFolder(data)
  const lock = lockState(join(data, 'lock'))
  if (lock === null) throw alreadyServed(folder)
  return lock
}

const hasEntry = (index: BlobIndex, name: string) =>
  index.entries().some((entry) => entry.name === name)

interface Stores {
  readonly index: BlobIndex
  readonly blobs: Blobs
  readonly room: BlobRoom
  readonly downloads: Downloads
}

function start(stores: Stores, entry: CacheEntry, force: boolean): Download | null {
  const key = keyOf(entry)
  const { index, downloads, room } = stores
  if (!force && index.find(key) !== null) return null
  const download = downloads.start({
    key,
    url: secretSourceOf(entry),
    sha256: entry.sha256,
    arch: decideArch(entry.arch, [entry.name, entry.resolved_src, entry.src]),
    makeRoom: (bytes) => room.make(key, bytes),
  })
  void download.ended.finally(() => room.release(key))
  return download
}

/** An image whose digest is known may be here already, from another address. */
async function adopt({ index }: Stores, entry: CacheEntry): Promise<void> {
  const key = keyOf(entry)
  if (entry.sha256 === null || index.find(key) !== null) return
  const same = [...index.sources().values()].find(({ sha256 }) => sha256 === entry.sha256)
  if (same !== undefined) await index.store(key, { ...same, version: null })
}

/** Two entries may share a source, and two sources the bytes. */
async function removeEntry(stores: Stores, name: string): Promise<void> {
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

/** Removes what a crash left over, and forgets blobs that are missing. Returns when each was last used. */
async function tidy(blobs: Blobs, index: BlobIndex): Promise<Map<string, number>> {
  const files = new Map((await blobs.list()).map((file) => [file.sha256, file]))
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

async function listWanted(blobs: Blobs, notes: RecordsOf<PartNote>) {
  const keys = new Set<string>()
  for (const key of await blobs.listParts()) {
    const note = await notes.read(key)
    if (note === null) await blobs.removePart(key)
    else if (note.isWanted) keys.add(key)
  }
  return keys
}

/** Continues the downloads that a stop interrupted, and removes parts of entries that are gone. */
async function resume(stores: Stores, keys: ReadonlySet<string>): Promise<void> {
  for (const key of keys) {
    const entry = stores.index.entries().find((one) => keyOf(one) === key)
    if (entry === undefined) await stores.blobs.removePart(key)
    else start(stores, entry, true)
  }
}

const isBound = (index: BlobIndex, pins: Pins, sha256: string): boolean =>
  index.entries().some((entry) => {
    const ref = blobKeyOf(entry.src)
    return ref !== null && pins.has(ref) && index.find(keyOf(entry))?.sha256 === sha256
  })

function findEntry(index: BlobIndex, name: string): CacheEntry {
  const entry = index.entries().find((one) => one.name === name)
  if (entry === undefined) throw unknown(name)
  return entry
}

const alreadyServed = (folder: string) =>
  new Fault('conflict', `another flasher-cache serves ${folder}`, {
    hint: 'Stop it, or choose another folder with [cache] dir or FLASHER_CACHE_DIR.',
  })
const unknown = (name: string) => new Fault('not-found', `there is no entry named ${name}`)
const inUse = (name: string) =>
  new Fault('conflict', `machines are bound to ${name}`, {
    hint: 'Bind them to another image first, or remove it anyway (force).',
  })
