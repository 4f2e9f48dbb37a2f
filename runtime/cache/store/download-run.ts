/** Downloads one source into the cache: resumes if possible, else begins again; hashes, checks, publishes. */
import type { Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { Fault, type FaultCode } from '../../kit/foundation/fault.ts'
import { type Blobs, describeFull, type PartNote } from '../blobs/blobs.ts'
import { checkStart } from '../../engine/image/content/stored-image.ts'
import { checkSent } from '../../engine/image/images.ts'
import type { ImageFormat } from '../../engine/image/rules/image.ts'
import type { IndexChecks } from '../../engine/image/frame/index-checks.ts'
import { hashStart } from '../../kit/host/file-hash.ts'
import { createGrowth, type Growth } from '../blobs/growth.ts'
import { linger } from '../../kit/host/watch.ts'
import type { RecordsOf } from '../../kit/host/records.ts'
import type { Sources } from '../../engine/image/sources/sources.ts'
import type { Source } from '../../engine/image/sources/source.ts'

export interface DownloadDependencies {
  readonly sources: Pick<Sources, 'open'>
  readonly blobs: Blobs
  readonly notes: RecordsOf<PartNote>
  readonly indexes: IndexChecks
  readonly bootId: string | null
  now(): Date
  /** After so many bytes they are made durable, so that a power cut costs no more than them. */
  readonly checkpointBytes?: number
  /** Milliseconds before it is begun again for the first time. */
  readonly againMs?: number
}

export interface DownloadOrder {
  /** What the blob is kept under while it has no digest. */
  readonly key: string
  /** The address to fetch; may hold a password. */
  readonly url: string
  /** Lower case; null: whatever comes is right. */
  readonly sha256: string | null
  /** Which image, where a registry holds several. */
  readonly arch?: string | null
  /** What it is called, in messages. */
  readonly name: string
  /** Null: none that can be flashed. */
  readonly format: ImageFormat | null
  /** The operator said that it is offered whatever it looks like. */
  readonly anyContent: boolean
  /** Throws a Fault where the cache has no room for so many bytes in all. */
  makeRoom(bytes: number): Promise<void>
}

/** All bytes, which are the right ones. */
interface Whole {
  readonly sha256: string
  readonly sizeBytes: number
  /** Of the source; null: it names none. */
  readonly version: string | null
}

export interface Downloaded extends Whole {
  /** Of an image in frames, which were compared with it; null: it has none. */
  readonly indexSha256: string | null
}

/** What others see of a download. */
export interface DownloadProgress {
  /** What readers follow; another one when it begins again. */
  growth: Growth
  /** Of decoding the frames, 0 to 1; null: they are not being decoded. */
  checked: number | null
}

/** Room is reserved in such steps where the source does not report its size. */
const STEP_BYTES = 256 * 1024 * 1024
/** How often a download is begun that breaks off where its source cannot go on. */
const MAX_BEGINNINGS = 5
const AGAIN_MS = 1000

/** Throws a Fault; the part stays where going on with it later makes sense. */
export async function runDownload(
  parts: DownloadDependencies,
  order: DownloadOrder,
  progress: DownloadProgress,
  signal: AbortSignal,
): Promise<Downloaded> {
  const { blobs, notes } = parts
  await using handle = await blobs.openPart(order.key)
  try {
    const whole =
      (await findWhole(parts, order, handle, progress.growth)) ??
      (await fetchPatiently({ parts, order, handle, signal }, progress))
    // Whoever has followed it gets its last byte now, and compares the frames itself.
    progress.growth.complete()
    const indexSha256 = await checkIndex(parts, whole, handle, progress, signal)
    await blobs.publish(order.key, handle, { sha256: whole.sha256, usedAt: parts.now() })
    await notes.remove(order.key)
    return { ...whole, indexSha256 }
  } catch (thrown) {
    const full = describeFull(thrown, await blobs.free())
    // Of this try or of one before: a source that cannot be reached says nothing about it.
    const isNothing = (await handle.stat()).size === 0
    const isWorthless = full !== null || isWrong(thrown) || isNothing
    if (isWorthless) await discardPart(parts, order.key)
    else if (!signal.aborted) await keepPart(notes, order.key)
    throw full ?? thrown
  }
}

async function checkIndex(
  { indexes }: DownloadDependencies,
  { sha256, sizeBytes }: Whole,
  handle: FileHandle,
  progress: DownloadProgress,
  signal: AbortSignal,
): Promise<string | null> {
  const onProgress = (part: number) => {
    progress.checked = part
  }
  const name = `the image ${sha256.slice(0, 12)}`
  progress.checked = 0
  return indexes.check(handle, { name, sizeBytes, signal, onProgress })
}

/** What the process before had received in full, and not yet decoded. */
async function findWhole(
  { notes }: DownloadDependencies,
  order: DownloadOrder,
  handle: FileHandle,
  growth: Growth,
): Promise<Whole | null> {
  const note = await notes.read(order.key)
  if (note === null || note.sha256 === null) return null
  const { sha256, durableBytes: sizeBytes, version } = note
  const { size } = await handle.stat()
  if (size !== sizeBytes || (order.sha256 !== null && order.sha256 !== sha256)) return null
  await order.makeRoom(sizeBytes)
  growth.start(sizeBytes, sizeBytes)
  return { sha256, sizeBytes, version }
}

type Fetching = Pick<Part, 'parts' | 'order' | 'handle'> & { readonly signal: AbortSignal }

/** What cannot go on in the middle begins again: readers of the first try have no use for the next. */
async function fetchPatiently(fetching: Fetching, progress: DownloadProgress): Promise<Whole> {
  const { parts, signal } = fetching
  for (let beginnings = 1; ; beginnings += 1) {
    try {
      return await fetchOnce(fetching, progress.growth)
    } catch (thrown) {
      if (beginnings === MAX_BEGINNINGS || !isBroken(thrown) || signal.aborted) throw thrown
      progress.growth.fail(thrown)
      progress.growth = createGrowth()
      await linger((parts.againMs ?? AGAIN_MS) * beginnings, signal)
      signal.throwIfAborted()
    }
  }
}

async function fetchOnce(
  { parts, order, handle, signal }: Fetching,
  growth: Growth,
): Promise<Whole> {
  await using source = await parts.sources.open(order.url, { signal, arch: order.arch })
  checkPromise(order, source)
  if (!order.anyContent) checkSent({ ...source, name: order.name })
  await order.makeRoom(source.sizeBytes ?? STEP_BYTES)
  const from = await findStart(parts, order, source, handle)
  await handle.truncate(from)
  const hash = await hashStart(handle, from, signal)
  const part = { parts, order, source, handle, hash, growth }
  await noteProgress(part, from)
  growth.start(from, source.sizeBytes)
  await receive(part, from)
  const sha256 = hash.digest('hex')
  checkDigest(order, source, sha256)
  await checkStart(handle, { ...order, sizeBytes: growth.bytes, sent: source.sent })
  await handle.datasync()
  await noteProgress(part, growth.bytes, sha256)
  return { sha256, sizeBytes: growth.bytes, version: source.version ?? null }
}

/** A tag that now names other bytes is refused before any are fetched. */
function checkPromise({ sha256 }: DownloadOrder, source: Source): void {
  if (sha256 === null || source.sha256 === undefined || sha256 === source.sha256) return
  throw mismatch(source.name, sha256, source.sha256)
}

function checkDigest({ sha256 }: DownloadOrder, source: Source, found: string): void {
  const wanted = sha256 ?? source.sha256 ?? found
  if (wanted !== found) throw mismatch(source.name, wanted, found)
}

/** Another try asks the source again whether it is still the same. */
async function keepPart(notes: RecordsOf<PartNote>, key: string): Promise<void> {
  const note = await notes.read(key)
  if (note !== null && note.sha256 !== null) await notes.write(key, { ...note, sha256: null })
}

export async function discardPart(
  { blobs, notes }: Pick<DownloadDependencies, 'blobs' | 'notes'>,
  key: string,
): Promise<void> {
  await notes.remove(key)
  await blobs.removePart(key)
}

interface Part {
  readonly parts: DownloadDependencies
  readonly order: DownloadOrder
  readonly source: Source
  readonly handle: FileHandle
  readonly hash: Hash
  readonly growth: Growth
}

async function receive(part: Part, from: number): Promise<void> {
  const { parts, order, source, handle, hash, growth } = part
  const { checkpointBytes = STEP_BYTES } = parts
  let at = from
  let durable = from
  let room = source.sizeBytes ?? STEP_BYTES
  for await (const chunk of source.stream(from)) {
    if (at + chunk.length > room) {
      room += STEP_BYTES
      await order.makeRoom(room)
    }
    const written = handle.writeFile(chunk)
    hash.update(chunk) // Meanwhile.
    await written
    at += chunk.length
    growth.add(chunk.length)
    if (at - durable >= checkpointBytes) {
      durable = at
      await handle.datasync()
      await noteProgress(part, durable)
    }
  }
}

const noteProgress = (
  { parts, order, source }: Part,
  durableBytes: number,
  sha256: string | null = null,
) =>
  parts.notes.write(order.key, {
    version: source.version ?? null,
    sizeBytes: source.sizeBytes,
    durableBytes,
    sha256,
    bootId: parts.bootId,
    isWanted: true,
  })

/** How much of the part is surely the beginning of what the source has now. */
async function findStart(
  parts: DownloadDependencies,
  order: DownloadOrder,
  source: Source,
  handle: FileHandle,
): Promise<number> {
  const note = await parts.notes.read(order.key)
  if (note === null || !isSameSource(note, source)) return 0
  const { size } = await handle.stat()
  const isInMemory = note.bootId !== null && note.bootId === parts.bootId
  const sure = isInMemory ? size : Math.min(size, note.durableBytes)
  return Math.min(sure, source.sizeBytes ?? 0)
}

/** Without a version two halves of two files could be joined; without ranges there is no middle. */
const isSameSource = (note: PartNote, { version, sizeBytes, readAt }: Source) =>
  readAt !== null &&
  version !== undefined &&
  version !== null &&
  version === note.version &&
  sizeBytes === note.sizeBytes

const isWrong = (thrown: unknown) => thrown instanceof Fault && WRONG.has(thrown.code)

const WRONG: ReadonlySet<FaultCode> = new Set(['digest-mismatch', 'image-broken', 'plan-refused'])

const isBroken = (thrown: unknown) => thrown instanceof Fault && thrown.code === 'source-broken'

const mismatch = (name: string, expected: string, found: string) =>
  new Fault('digest-mismatch', `${name} holds ${found}, but ${expected} was expected`, {
    hint: 'Correct the digest of the entry, or look at the source; nothing of it is offered.',
  })
