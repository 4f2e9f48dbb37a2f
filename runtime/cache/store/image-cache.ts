/** The cache as a whole: its images, its downloads, every operation on it, and whether their sources have moved on. */
import { join } from 'node:path'
import {
  ageOf,
  blobKeyOf,
  type CacheEntry,
  decideMovedAt,
  hasMovedOn,
  keyOf,
  parseCacheEntry,
  secretSourceOf,
} from '#engine/catalog/rules/cache-entry.ts'
import { decideArch, decideFormat } from '#engine/catalog/rules/catalog.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { type FieldError, renderFieldErrors } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { awaitEnding } from '#kit/host/watch.ts'
import { type Changes, createChanges } from '#kit/host/changes.ts'
import {
  type BlobIndex,
  type Blobs,
  createBlobIndex,
  createBlobRoom,
  createBlobs,
  rememberUse,
  type StoredSource,
} from '#cache/blobs/blobs.ts'
import { createBootFacts } from './boot-facts.ts'
import { createDecoders } from '#engine/image/formats.ts'
import { createBlobReaders } from './blob-readers.ts'
import { listRows } from './cache-rows.ts'
import { createCaptures } from '#cache/captures/captures.ts'
import { createDownloads, type Download, type Downloads, PartRecordSchema } from './downloads.ts'
import { createDroppedFiles } from './dropped-files.ts'
import { createUploads } from '#cache/arrivals/arrivals.ts'
import { createPins, DATA_FOLDER, type Pins } from './pins.ts'
import { type ManifestImage, renderFlaw } from '#engine/catalog/rules/manifest.ts'
import { readManifest } from '#engine/catalog/catalog-manifests.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import { makeFolder } from '#kit/host/folders.ts'
import { openPartialFiles } from '#kit/host/partial-files.ts'
import { createRecords, selectRecords } from '#kit/host/records.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import { lockState } from '#fleet/state/lock.ts'
import {
  createIndexChecks,
  type DecodedImage,
  type DecodedMemory,
  type IndexChecks,
} from '#engine/image/frame/frame-check.ts'
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { createQueue } from '#kit/host/queue.ts'
import { checkSent } from '#engine/image/images.ts'

export type ImageCache = Awaited<ReturnType<typeof createImageCache>>

type AddRefusal =
  | { readonly why: 'invalid'; readonly errors: readonly FieldError[] }
  | { readonly why: 'taken'; readonly name: string }

/** Resumes interrupted downloads. A Fault `conflict` if another process serves the folder. */
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
  const bootFacts = await createBootFacts({
    records,
    changes,
    data,
    rows,
    log,
    decoders: createDecoders({ shell: createShell({ env: parts.env ?? {} }) }),
    reserve: (remaining) => room.reserve('boot-look', remaining),
    release: () => room.release('boot-look'),
    againMs: parts.againMs,
    open: async ({ fileName }, sha256) => {
      const file = fileName === '' ? null : dropped.find(fileName)
      if (file === null)
        return { handle: await blobs.peek(sha256), isStill: () => Promise.resolve(true) }
      if (file.sha256 !== sha256) throw new Fault('source-broken', `${fileName} was replaced`)
      const handle = await dropped.open(file)
      return { handle, isStill: () => dropped.isUnchanged(file, handle) }
    },
  })
  const recalling = startRecalling({ index, blobs, indexes, log })
  const upstreamChecks = startUpstreamChecks({ ...parts, index, downloads })

  return {
    ...readers,
    rows,
    /** Changes with the list of ready images. */
    version: stores.version,
    uploads,
    captures,
    findBoot: bootFacts.find,
    space: room.space,
    pin: pins.pin,
    listLabels: pins.listLabels,
    listUsers: pins.listUsers,
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
      for (const part of [
        bootFacts,
        upstreamChecks,
        recalling,
        downloads,
        uploads,
        captures,
        dropped,
      ])
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
  new Fault('conflict', `machines use ${name}`, {
    hint: 'Assign another image to them first, or force the removal.',
  })

// Adds all images of a catalog manifest to the cache's list; existing entries stay as they are.

export interface Imported {
  readonly added: readonly string[]
  /** Listed already, by the same name and from the same source. */
  readonly known: readonly string[]
  /** One sentence for each entry that was left out. */
  readonly flaws: readonly string[]
}

/** By its ending; in a registry by the end of the repository (`oras://host/lab/catalog:v1`). */
export const isManifestUrl = (url: string): boolean =>
  /\.toml([?#]|$)/i.test(url) || /^oras:\/\/.*[/._-](catalog|toml)[:@][^/]*$/i.test(url)

/** Rejects with a Fault where the manifest is unavailable or invalid; reads no local files. */
export async function importCatalog(
  cache: Pick<ImageCache, 'add' | 'rows'>,
  url: string,
  env: Environment,
): Promise<Imported> {
  if (!/^(https?|oras):\/\//i.test(url)) {
    throw new Fault('input-invalid', 'a catalog is read from an http(s):// or oras:// address here')
  }
  const { images, flaws } = await readManifest(url, { env })
  const outcomes = await Array.fromAsync(images, (image) => addImage(cache, image))
  const of = (kind: Outcome['kind']) =>
    outcomes.flatMap((outcome) => (outcome.kind === kind ? [outcome.words] : []))
  return {
    added: of('added'),
    known: of('known'),
    flaws: [...flaws.map(renderFlaw), ...of('flaw')],
  }
}

interface Outcome {
  readonly kind: 'added' | 'known' | 'flaw'
  readonly words: string
}

async function addImage(
  cache: Pick<ImageCache, 'add' | 'rows'>,
  { ref: _ref, line: _line, ...fields }: ManifestImage,
): Promise<Outcome> {
  const { name, src } = fields
  const added = await cache.add(fields)
  if (added.ok) return { kind: 'added', words: name }
  const { refusal } = added
  if (refusal.why === 'invalid') {
    return { kind: 'flaw', words: `${name}: ${renderFieldErrors(refusal.errors)}` }
  }
  const isSame = cache.rows().some(({ entry }) => entry.name === name && entry.src === src)
  return isSame
    ? { kind: 'known', words: name }
    : { kind: 'flaw', words: `${name}: another image has that name` }
}

interface ImageCacheDependencies {
  /** Where people drop files; the cache's own files are in its `.cache`. */
  readonly folder: string
  readonly sources: Pick<Sources, 'open'>
  maxBytes(): number
  /** Interval of the looks at the sources; Infinity: never. */
  upstreamSeconds(): number
  now(): Date
  /** For decoders; absent: none of tools. */
  readonly env?: Environment
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

type ImageStores = Awaited<ReturnType<typeof openStores>>

/** `data`: the cache's own folder. */
async function openStores(parts: ImageCacheDependencies, data: string) {
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
async function lockFolder(folder: string, data: string): Promise<Disposable> {
  await makeFolder(data)
  const lock = lockState(join(data, 'lock'))
  if (lock === null) throw alreadyServed(folder)
  return lock
}

/** Returns last uses, the least recent first; a time in the future counts as the oldest. */
async function tidy(blobs: Blobs, index: BlobIndex, now: number): Promise<Map<string, number>> {
  const countedFrom = (usedAt: number) => (usedAt > now ? 0 : usedAt)
  const listed = await blobs.list()
  const byAge = listed.toSorted((a, b) => countedFrom(a.usedAt) - countedFrom(b.usedAt))
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

// What the images in frames are once they are decoded, by the digest of their index.

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const DecodedSchema = z.object({ sizeBytes: z.int().min(0), sha256: Sha256.nullable() })

/** More images than any cache has; the oldest go first. */
const MAX = 10_000

async function createDecodedImages(
  records: Storage,
  { onChange, log }: { onChange(): void; readonly log: { warn(message: string): void } },
): Promise<DecodedMemory> {
  const stored = selectRecords(records, 'decoded', DecodedSchema)
  const known = new Map<string, DecodedImage>(await stored.list())
  return {
    find: (indexSha256) => known.get(indexSha256) ?? null,
    /** Counts at once; the write may be lost in a crash, and is only late then. */
    remember(indexSha256, image) {
      if (known.has(indexSha256)) return
      known.set(indexSha256, image)
      onChange()
      const [oldest] = known.size > MAX ? known.keys() : []
      if (oldest !== undefined) {
        known.delete(oldest)
        stored.remove(oldest).catch(() => undefined)
      }
      stored.write(indexSha256, image).catch((thrown: unknown) => {
        log.warn(`the size of a decoded image is not recorded: ${renderError(thrown)}`)
      })
    },
  }
}

interface RecallDependencies {
  readonly index: Pick<BlobIndex, 'sources'>
  readonly blobs: Pick<Blobs, 'peek'>
  readonly indexes: Pick<IndexChecks, 'recall'>
  readonly log: { warn(message: string): void }
}

/** Reads the indexes of stored images whose record was not written before the cache ended. */
function startRecalling(parts: RecallDependencies): AsyncDisposable {
  const closing = new AbortController()
  const work = recallAll(parts, closing.signal)
  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      await work
    },
  }
}

async function recallAll(
  { index, blobs, indexes, log }: RecallDependencies,
  signal: AbortSignal,
): Promise<void> {
  for (const { sha256, sizeBytes, checkedIndex } of index.sources().values()) {
    if (checkedIndex === null || signal.aborted) continue
    const name = `the image ${sha256.slice(0, 12)}`
    try {
      await using handle = await blobs.peek(sha256)
      await indexes.recall(handle, { checkedIndex, name, sizeBytes })
    } catch (thrown) {
      if (!signal.aborted) log.warn(`${name}: ${renderError(thrown)}`)
    }
  }
}

interface UpstreamChecksDependencies {
  readonly sources: Pick<Sources, 'open'>
  readonly index: BlobIndex
  readonly downloads: Pick<Downloads, 'find'>
  /** Infinity: never. */
  upstreamSeconds(): number
  now(): Date
  readonly log: { info(message: string): void; warn(message: string): void }
  /** Milliseconds between two looks at the schedule. */
  readonly upstreamTickMs?: number
}

const AT_ONCE = 2
const TICK_MS = 10_000
/** Longer than any server needs for an answer without a body. */
const MAX_CHECK_MS = 60_000

/** `fetchedAt` names the download; `atMs` is monotonic. */
interface UpstreamCheck {
  readonly fetchedAt: string
  readonly atMs: number
}

function startUpstreamChecks(parts: UpstreamChecksDependencies): AsyncDisposable {
  const { index, downloads, log, now } = parts
  const closing = new AbortController()
  const enqueue = createQueue(AT_ONCE)
  const checks = new Map<string, UpstreamCheck>()
  const running = new Map<string, Promise<void>>()

  function isDue(key: string, { fetchedAt, lookedAt }: StoredSource, everyMs: number): boolean {
    const nowMs = performance.now()
    const known = checks.get(key)
    const last =
      known?.fetchedAt === fetchedAt
        ? known
        : { fetchedAt, atMs: nowMs - ageOf(Date.parse(lookedAt ?? fetchedAt), now().getTime()) }
    checks.set(key, last)
    return nowMs - last.atMs >= everyMs
  }

  async function check(key: string, entry: CacheEntry): Promise<void> {
    const before = index.find(key)
    if (before === null || closing.signal.aborted) return
    const hasMoved = await ask(parts, entry, before, closing.signal)
    checks.set(key, { fetchedAt: before.fetchedAt, atMs: performance.now() })
    // Downloaded anew or removed meanwhile, or the cache is stopping.
    if (index.find(key) !== before || closing.signal.aborted) return
    const lookedAt = now().toISOString()
    const movedAt = decideMovedAt(before.movedAt ?? null, hasMoved, lookedAt)
    if (movedAt === lookedAt) log.info(`${entry.name}: its source has a newer version`)
    await index.store(key, { ...before, lookedAt, movedAt })
  }

  function begin(key: string, entry: CacheEntry) {
    const work = enqueue(() => check(key, entry))
      .catch((thrown: unknown) => log.warn(`${entry.name}: ${renderError(thrown)}`))
      .finally(() => running.delete(key))
    running.set(key, work)
  }

  function tick() {
    const everyMs = parts.upstreamSeconds() * 1000
    if (everyMs === Infinity) return
    for (const entry of index.entries()) {
      const key = keyOf(entry)
      const stored = index.find(key)
      if (stored === null) checks.delete(key)
      else if (!running.has(key)) {
        if (isDue(key, stored, everyMs) && downloads.find(key) === null) begin(key, entry)
      }
    }
  }

  const timer = setInterval(tick, parts.upstreamTickMs ?? TICK_MS).unref()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      await Promise.all(running.values())
    },
  }
}

/** Null: the source did not say, or did not answer with an image. */
async function ask(
  { sources, log }: UpstreamChecksDependencies,
  entry: CacheEntry,
  stored: StoredSource,
  closing: AbortSignal,
): Promise<boolean | null> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(MAX_CHECK_MS)])
  const names = [entry.name, entry.resolved_src, entry.src]
  const arch = decideArch(entry.arch, names)
  try {
    await using source = await sources.open(secretSourceOf(entry), { signal, arch })
    if (source.sizeBytes === 0) return null
    if (entry.any_content !== true) checkSent({ ...source, name: entry.name })
    return hasMovedOn(stored, source)
  } catch (thrown) {
    if (!closing.aborted)
      log.info(`${entry.name}: its source could not be checked: ${renderError(thrown)}`)
    return null
  }
}
