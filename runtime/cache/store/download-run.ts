/** Downloads one source into the cache: resumes if possible, else begins again; hashes, checks, publishes. */
import { z } from 'zod'
import { Fault, type FaultCode } from '../../kit/foundation/fault.ts'
import { type Blobs, describeFull } from '../blobs/blobs.ts'
import { checkStart } from '../../engine/image/content/stored-image.ts'
import { checkSent } from '../../engine/image/images.ts'
import type { ImageFormat } from '../../../appliance/disk-images.ts'
import type { IndexChecks } from '../../engine/image/frame/index-checks.ts'
import { createGrowth, type Growth } from '../blobs/growth.ts'
import { linger } from '../../kit/host/watch.ts'
import {
  createPartialFile,
  type PartialFile,
  type PartialFiles,
  type PartialWriter,
} from '../../kit/host/partial-files.ts'
import type { Sources } from '../../engine/image/sources/sources.ts'
import type { Source } from '../../engine/image/sources/source.ts'

/** What is remembered of an unfinished download, so that the next start can resume it. */
export const PartRecordSchema = z.object({
  /** The version that the source named; null: it named none, and the part is worth nothing. */
  version: z.string().nullable().catch(null),
  sizeBytes: z.number().nullable().catch(null),
  /** This many bytes are certainly on the disk. */
  durableBytes: z.int().min(0),
  /** The run of the kernel in which the rest was written. */
  bootId: z.string().nullable().catch(null),
  /** All of it is here, and has this digest; null: not yet. */
  sha256: z.string().nullable().catch(null),
  /** Whether it is to go on by itself after a restart. */
  isWanted: z.boolean().catch(false),
})

type PartRecord = Readonly<z.infer<typeof PartRecordSchema>>

export interface DownloadDependencies {
  readonly sources: Pick<Sources, 'open'>
  readonly blobs: Blobs
  readonly partials: PartialFiles<PartRecord>
  readonly indexes: Pick<IndexChecks, 'check'>
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
  /** The digest in lower case; null: whatever comes is right. */
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
  /** The version that the source names; null: it names none. */
  readonly version: string | null
}

export interface Downloaded extends Whole {
  /** The digest of the index, with which the frames were compared; null: it has none. */
  readonly indexSha256: string | null
}

/** What others see of a download. */
export interface DownloadProgress {
  /** What readers follow; another one when it begins again. */
  growth: Growth
  /** How much of the frames is decoded, 0 to 1; null: they are not being decoded. */
  checked: number | null
}

/** Room is reserved in such steps where the source does not report its size. */
const STEP_BYTES = 256 * 1024 * 1024
/** How often a download is begun that breaks off where its source cannot go on. */
const MAX_BEGINNINGS = 5
const AGAIN_MS = 1000

interface Fetching {
  readonly parts: DownloadDependencies
  readonly order: DownloadOrder
  readonly file: PartialFile<PartRecord>
  readonly writer: PartialWriter<PartRecord>
  readonly progress: DownloadProgress
  readonly signal: AbortSignal
}

/** Throws a Fault; the part stays where going on with it later makes sense. */
export async function runDownload(
  parts: DownloadDependencies,
  order: DownloadOrder,
  progress: DownloadProgress,
  signal: AbortSignal,
): Promise<Downloaded> {
  const { blobs, partials } = parts
  const { key } = order
  const file = (await partials.find(key)) ?? createPartialFile(key, NOTHING_YET)
  await using writer = await partials.open(file)
  const fetching = { parts, order, file, writer, progress, signal }
  try {
    const whole = (await findWhole(fetching)) ?? (await fetchPatiently(fetching))
    // Whoever has followed it gets its last byte now, and compares the frames itself.
    progress.growth.complete()
    const indexSha256 = await checkIndex(fetching, whole)
    await blobs.publish(partials.pathOf(key), writer.handle, {
      sha256: whole.sha256,
      usedAt: parts.now(),
    })
    await partials.remove(key)
    return { ...whole, indexSha256 }
  } catch (thrown) {
    const full = describeFull(thrown, await blobs.free())
    // What has come may be of a try before: a source that cannot be reached says nothing about it.
    const isNothing = (await writer.handle.stat()).size === 0
    const isWorthless = full !== null || isWrong(thrown) || isNothing
    if (isWorthless) await partials.remove(key)
    // Another try asks the source again whether it is still the same.
    else if (!signal.aborted && file.record.sha256 !== null) {
      await partials.save(file, { sha256: null })
    }
    throw full ?? thrown
  }
}

const NOTHING_YET: PartRecord = {
  version: null,
  sizeBytes: null,
  durableBytes: 0,
  bootId: null,
  sha256: null,
  isWanted: false,
}

async function checkIndex(
  { parts: { indexes }, writer, progress, signal }: Fetching,
  { sha256, sizeBytes }: Whole,
): Promise<string | null> {
  const onProgress = (part: number) => {
    progress.checked = part
  }
  const name = `the image ${sha256.slice(0, 12)}`
  progress.checked = 0
  return indexes.check(writer.handle, { name, sizeBytes, signal, onProgress })
}

/** What the process before had received in full, and not yet decoded. */
async function findWhole({ order, file, writer, progress }: Fetching): Promise<Whole | null> {
  const { sha256, durableBytes: sizeBytes, version } = file.record
  if (sha256 === null || (order.sha256 !== null && order.sha256 !== sha256)) return null
  if ((await writer.handle.stat()).size !== sizeBytes) return null
  await order.makeRoom(sizeBytes)
  progress.growth.start(sizeBytes, sizeBytes)
  return { sha256, sizeBytes, version }
}

/** What cannot go on in the middle begins again: readers of the first try have no use for the next. */
async function fetchPatiently(fetching: Fetching): Promise<Whole> {
  const { parts, progress, signal } = fetching
  for (let beginnings = 1; ; beginnings += 1) {
    try {
      return await fetchOnce(fetching)
    } catch (thrown) {
      if (beginnings === MAX_BEGINNINGS || !isBroken(thrown) || signal.aborted) throw thrown
      progress.growth.fail(thrown)
      progress.growth = createGrowth()
      await linger((parts.againMs ?? AGAIN_MS) * beginnings, signal)
      signal.throwIfAborted()
    }
  }
}

async function fetchOnce(fetching: Fetching): Promise<Whole> {
  const { parts, order, file, writer, signal } = fetching
  const { growth } = fetching.progress
  await using source = await parts.sources.open(order.url, { signal, arch: order.arch })
  checkPromise(order, source)
  if (!order.anyContent) checkSent({ ...source, name: order.name })
  await order.makeRoom(source.sizeBytes ?? STEP_BYTES)
  // These bytes are surely the beginning of what the source has now.
  await writer.start(
    isSameSource(file.record, source) ? Math.min(file.offset, source.sizeBytes ?? 0) : 0,
  )
  const hash = await writer.hash(signal)
  const version = source.version ?? null
  const { sizeBytes } = source
  const { bootId } = parts.partials
  await writer.keep({ version, sizeBytes, sha256: null, bootId, isWanted: true })
  growth.start(file.offset, sizeBytes)
  await receive(fetching, source)
  const sha256 = hash.copy().digest('hex')
  checkDigest(order, source, sha256)
  await checkStart(writer.handle, { ...order, sizeBytes: growth.bytes, sent: source.sent })
  await writer.keep({ sha256 })
  return { sha256, sizeBytes: growth.bytes, version }
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

async function receive(
  { parts, order, writer, progress: { growth }, signal }: Fetching,
  source: Source,
): Promise<void> {
  const { checkpointBytes = STEP_BYTES } = parts
  let room = source.sizeBytes ?? STEP_BYTES
  await writer.receive(source.stream(growth.bytes), {
    signal,
    checkpointBytes,
    admit(end) {
      if (end <= room) return
      room += STEP_BYTES
      return order.makeRoom(room)
    },
    onBytes: growth.add,
  })
}

/** Two halves of two files could be joined without a version, and without ranges there is no middle. */
const isSameSource = (note: PartRecord, { version, sizeBytes, readAt }: Source) =>
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
