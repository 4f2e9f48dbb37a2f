/** The running downloads: one per blob however many clients ask, a few at a time, and why others failed. */
import type { FileHandle } from 'node:fs/promises'
import { Fault, renderError, type FaultCode } from '#kit/foundation/fault.ts'
import { createPace, type Pace } from '#kit/foundation/size.ts'
import {
  openStored,
  createGrowth,
  type Growth,
  type Blobs,
  describeFull,
} from '#cache/blobs/blobs.ts'
import { createJobs, isOver, QUEUED, type Job, type JobState } from '#kit/host/jobs.ts'
import { watch, linger } from '#kit/host/watch.ts'
import { z } from 'zod'
import { checkStart } from '#engine/image/image-inspection.ts'
import { checkSent } from '#engine/image/images.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { IndexChecks } from '#engine/image/frame/frame-check.ts'
import {
  createPartialFile,
  type PartialFile,
  type PartialFiles,
  type PartialWriter,
} from '#kit/host/partial-files.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import type { Source } from '#engine/image/sources/source.ts'

export interface Download {
  readonly key: string
  /** Counts from 1. */
  readonly id: number
  readonly isQueued: boolean
  readonly growth: Growth
  /** Decoded part of the frames, 0 to 1; null: not decoding. */
  readonly checked: number | null
  /** Bytes a second of the last moments. */
  readonly rate: number
  readonly eta: number | null
  /** Never rejects. */
  readonly ended: Promise<void>
}

export type Downloads = ReturnType<typeof createDownloads>

interface DownloadsDependencies extends DownloadDependencies {
  /** Resolves before readers learn that it is complete. */
  finished(order: DownloadOrder, result: Downloaded): Promise<void>
  readonly atOnce?: number
}

interface DownloadState extends JobState {
  readonly id: number
  readonly progress: DownloadProgress
  readonly pace: Pace
}

export function createDownloads(parts: DownloadsDependencies) {
  const { partials, atOnce = 3, now } = parts
  // One for each source; failed ones stay listed until they are tried again.
  const jobs = createJobs<DownloadState>({ parallel: atOnce, maxListed: Infinity, now })
  let count = 0

  function find(key: string): Download | null {
    const job = jobs.find(key)
    return job === null || isOver(job.state) ? null : toDownload(job)
  }

  async function run(order: DownloadOrder, { state, signal }: Job<DownloadState>) {
    const { progress, pace } = state
    const work = runDownload(parts, order, progress, signal)
    const measure = () => pace.add(performance.now() / 1000, progress.growth.bytes)
    const measuring = watch(work, 1000, measure)
    while ((await measuring.next()).done !== true);
    await parts.finished(order, await work)
  }

  return {
    find,
    /** Joins a running one. */
    start(order: DownloadOrder): Download {
      const { key } = order
      const before = find(key)
      if (before !== null) return before
      count += 1
      const progress: DownloadProgress = { growth: createGrowth(), checked: null }
      const state = { ...QUEUED, id: count, progress, pace: createPace() }
      const job = jobs.start(key, state, {
        run: (own) => run(order, own),
        async onEnd({ failure }) {
          if (failure !== null) progress.growth.fail(toFault(failure))
        },
      })
      return toDownload(job)
    },
    /** Null: the latest try did not fail, or there was none. */
    failureOf(key: string): Fault | null {
      const job = jobs.find(key)
      return job?.state.status === 'failed' ? toFault(job.failure) : null
    },
    forget: jobs.forget,
    /** False: there was none. */
    async cancel(key: string) {
      if (find(key) === null) return false
      await jobs.cancel(key, new Fault('cancelled', 'the download was cancelled'))
      await partials.remove(key)
      return true
    },
    async follow(download: Download): Promise<FileHandle> {
      await download.growth.started
      return openStored(partials.pathOf(download.key))
    },
    /** Parts stay for the next start. */
    [Symbol.asyncDispose]: jobs[Symbol.asyncDispose],
  }
}

const toDownload = ({ key, state, ended }: Job<DownloadState>): Download => ({
  key,
  id: state.id,
  isQueued: state.status === 'queued',
  growth: state.progress.growth,
  checked: state.progress.checked,
  rate: state.pace.rate,
  eta: state.pace.eta(state.progress.growth.total),
  ended,
})

/** Our own mistakes are shown, too. */
function toFault(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown
  return new Fault('source-broken', `the download failed: ${renderError(thrown)}`, {
    cause: thrown,
  })
}

// Downloads one source into the cache: resumes if possible, else begins again; hashes, checks, publishes.

export const PartRecordSchema = z.object({
  /** Null: the source names none, and the part cannot be resumed. */
  version: z.string().nullable().catch(null),
  sizeBytes: z.number().nullable().catch(null),
  /** Bytes that are certainly on the disk. */
  durableBytes: z.int().min(0),
  /** The boot in which the rest was written. */
  bootId: z.string().nullable().catch(null),
  /** Null: not complete. */
  sha256: z.string().nullable().catch(null),
  /** Goes on by itself after a restart. */
  isWanted: z.boolean().catch(false),
})

type PartRecord = Readonly<z.infer<typeof PartRecordSchema>>

interface DownloadDependencies {
  readonly sources: Pick<Sources, 'open'>
  readonly blobs: Blobs
  readonly partials: PartialFiles<PartRecord>
  readonly indexes: Pick<IndexChecks, 'check'>
  now(): Date
  /** Bytes that a power cut may cost at most. */
  readonly checkpointBytes?: number
  /** Milliseconds before the first retry. */
  readonly againMs?: number
}

interface DownloadOrder {
  /** The blob's key while it has no digest. */
  readonly key: string
  /** May hold a password. */
  readonly url: string
  /** Lower case; null: any digest is accepted. */
  readonly sha256: string | null
  /** For a registry that holds several. */
  readonly arch?: string | null
  readonly name: string
  /** Null: none that can be flashed. */
  readonly format: ImageFormat | null
  /** The operator offers it whatever it looks like. */
  readonly anyContent: boolean
  /** Throws a Fault where so many bytes in all do not fit. */
  makeRoom(bytes: number): Promise<void>
}

interface Whole {
  readonly sha256: string
  readonly sizeBytes: number
  /** Null: the source names none. */
  readonly version: string | null
}

interface Downloaded extends Whole {
  /** The frames were compared with it; null: there is no index. */
  readonly indexSha256: string | null
}

interface DownloadProgress {
  /** Replaced when the download begins again. */
  growth: Growth
  /** Decoded part of the frames, 0 to 1; null: not decoding. */
  checked: number | null
}

/** Reserved at a time where the source reports no size. */
const STEP_BYTES = 256 * 1024 * 1024
/** Tries of a download whose source cannot resume. */
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

/** Throws a Fault; a part that can be resumed stays. */
async function runDownload(
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
    // Readers get the last byte now; they compare the frames themselves.
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
    // The part may be of an earlier try: an unreachable source says nothing about it.
    const isNothing = (await writer.handle.stat()).size === 0
    const isWorthless = full !== null || isWrong(thrown) || isNothing
    if (isWorthless) await partials.remove(key)
    // The next try asks the source again whether it is still the same.
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

/** Received in full by the process before, but not decoded. */
async function findWhole({ order, file, writer, progress }: Fetching): Promise<Whole | null> {
  const { sha256, durableBytes: sizeBytes, version } = file.record
  if (sha256 === null || (order.sha256 !== null && order.sha256 !== sha256)) return null
  if ((await writer.handle.stat()).size !== sizeBytes) return null
  await order.makeRoom(sizeBytes)
  progress.growth.start(sizeBytes, sizeBytes)
  return { sha256, sizeBytes, version }
}

/** A source that cannot resume begins again, with new readers. */
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

/** Refuses a tag that now names other bytes before any are fetched. */
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

/** Without a version two halves of two files could be joined; without ranges there is no middle. */
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
