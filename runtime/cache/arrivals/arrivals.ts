/** Image files that clients send in parts: how they are received, verified and, once nobody continues them, removed. */
import { randomBytes } from 'node:crypto'
import type { Storage } from 'unstorage'
import { type ZodType, z } from 'zod'
import type { IndexChecks } from '#engine/image/frame/frame-check.ts'
import { Fault, renderError, type FaultCode } from '#kit/foundation/fault.ts'
import {
  createPartialFile,
  openPartialFiles,
  type PartialFile,
  type PartialFiles,
  type PartialRecord,
} from '#kit/host/partial-files.ts'
import { selectRecords } from '#kit/host/records.ts'
import { pause } from '#kit/host/watch.ts'
import {
  type BlobRoom,
  createSilences,
  describeFull,
  type FileDigests,
  type Silences,
} from '#cache/blobs/blobs.ts'
import { stat } from 'node:fs/promises'
import type { UploadRequest } from '#engine/catalog/rules/cache-entry.ts'
import { checkStart } from '#engine/image/image-inspection.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import { removeName } from '#kit/host/folders.ts'

export interface ArrivalDependencies {
  readonly data: string
  readonly records: Storage
  readonly room: Pick<BlobRoom, 'reserve' | 'release' | 'space'>
  /** The folder of complete files, into which people drop images, too. */
  readonly dropped: { adopt(path: string, name: string, digests: FileDigests): Promise<void> }
  readonly indexes: IndexChecks
  isTaken(name: string): boolean
  now(): Date
  /** Milliseconds of a monotonic clock. */
  elapsed(): number
  readonly log: { info(message: string): void; warn(message: string): void }
}

interface ArrivalRecord extends PartialRecord {
  readonly name: string
  /** ISO time of the last byte. */
  readonly touchedAt: string
}

export interface Arrival<Kept extends ArrivalRecord = ArrivalRecord> extends PartialFile<Kept> {
  isBusy: boolean
  /** Its result is what went wrong, or null. */
  check: Promise<unknown> | null
  /** Why nothing was kept of it, for a client that asks again. */
  failure: Fault | null
}

interface ArrivalKind<Kept extends ArrivalRecord> {
  /** The word for it in records and messages; with an `s`, the name of its folder. */
  readonly word: 'upload' | 'capture'
  readonly schema: ZodType<Kept>
  readonly unknown: string
  /** Whether it is hashed as it comes; else only when it is verified. */
  readonly isHashed: boolean
  /** `kept`: it is not continued any more, but stays. */
  stateOf(arrival: Arrival<Kept>): 'unfinished' | 'kept' | 'over'
  sweepOthers?(): Promise<void>
}

interface ArrivalPart<Kept> {
  readonly from: number
  /** Throws for bytes that may not be there. */
  admit(end: number): void
  readonly news: Partial<Kept>
  /** Bytes; absent: room was reserved before. */
  readonly reserved?: number
}

export const MAX_ARRIVALS = 32
const ABANDONED_MS = 24 * 3_600_000
const SWEEP_MS = 600_000

export interface Arrivals<Kept extends ArrivalRecord = ArrivalRecord>
  extends ArrivalDependencies, ArrivalKind<Kept>, AsyncDisposable {
  readonly files: PartialFiles<Kept>
  readonly silences: Silences
  /** By name, the oldest first. */
  readonly all: Map<string, Arrival<Kept>>
  readonly signal: AbortSignal
  /** Removes those that nobody continued for a day; this runs every few minutes as well. */
  sweep(): Promise<void>
}

/** Includes those of the process before, and removes files that belong to none. */
export async function openArrivals<Kept extends ArrivalRecord>(
  parts: ArrivalDependencies,
  kind: ArrivalKind<Kept>,
) {
  const { word } = kind
  const records = selectRecords(parts.records, word, kind.schema)
  const folder = `${parts.data}/${word}s`
  const files = await openPartialFiles({ folder, modes: PRIVATE, records })
  const silences = await createSilences(parts.records, `quiet-${word}s`, parts.elapsed)
  const closing = new AbortController()
  const { signal } = closing
  const all = new Map<string, Arrival<Kept>>()
  for (const file of await files.list()) all.set(file.name, toArrival(file))
  await files.sweep((id) => all.has(id))
  const timer = setInterval(() => {
    arrivals.sweep().catch((thrown: unknown) => parts.log.warn(`${word}s: ${renderError(thrown)}`))
  }, SWEEP_MS).unref()
  const arrivals: Arrivals<Kept> = {
    ...parts,
    ...kind,
    files,
    silences,
    all,
    signal,
    async sweep() {
      await kind.sweepOthers?.()
      await removeAbandoned(arrivals)
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      clearInterval(timer)
      await Promise.all([...all.values()].map(({ check }) => check))
    },
  }
  return arrivals
}

const PRIVATE = { folder: 0o700, file: 0o600 } as const

const toArrival = <Kept extends ArrivalRecord>(file: PartialFile<Kept>): Arrival<Kept> => ({
  ...file,
  isBusy: false,
  check: null,
  failure: null,
})

/** Throws a Fault `not-found`. */
export function findArrival<Kept extends ArrivalRecord>(
  { all, unknown }: Arrivals<Kept>,
  id: string,
): Arrival<Kept> {
  const arrival = all.get(id)
  if (arrival === undefined) throw new Fault('not-found', unknown)
  return arrival
}

export async function beginArrival<Kept extends ArrivalRecord>(
  arrivals: Arrivals<Kept>,
  record: Kept,
  store: (arrival: Arrival<Kept>) => Promise<void>,
): Promise<Arrival<Kept>> {
  const id = randomBytes(16).toString('hex')
  const arrival = toArrival(createPartialFile(id, record))
  // Before anything is awaited, so that parallel requests do not exceed the limits.
  arrivals.all.set(id, arrival)
  arrivals.silences.end(id)
  try {
    await store(arrival)
    return arrival
  } catch (thrown) {
    await removeArrival(arrivals, arrival)
    throw thrown
  }
}

export function touch({ silences, now }: Arrivals, { name }: Arrival) {
  silences.end(name)
  return { touchedAt: now().toISOString() }
}

/** Continues at the offset; what came before a failure stays. */
export async function receivePart<Kept extends ArrivalRecord>(
  arrivals: Arrivals<Kept>,
  arrival: Arrival<Kept>,
  bytes: AsyncIterable<Uint8Array>,
  { from, admit, news, reserved }: ArrivalPart<Kept>,
): Promise<void> {
  const { files, room, signal, isHashed } = arrivals
  const { removal } = arrival
  arrival.isBusy = true
  try {
    if (reserved !== undefined) {
      await room.reserve(arrival.name, () => Math.max(0, from + reserved - arrival.offset))
    }
    await using writer = await files.open(arrival)
    await writer.start(from)
    if (isHashed) await writer.hash(signal)
    try {
      await writer.receive(bytes, { signal, admit })
    } finally {
      if (arrival.offset > from && !removal.signal.aborted) {
        await writer.keep({ ...news, ...touch(arrivals, arrival) })
      }
    }
    removal.signal.throwIfAborted()
  } catch (thrown) {
    const { freeBytes } = await room.space()
    throw describeFull(thrown, freeBytes) ?? thrown
  } finally {
    if (reserved !== undefined) room.release(arrival.name)
    arrival.isBusy = false
  }
}

/** The upload is wrong, rather than our disk in trouble. */
const WRONG: ReadonlySet<FaultCode> = new Set(['digest-mismatch', 'image-broken', 'plan-refused'])

/** Throws what went wrong within that time. */
export async function awaitCheck({ check }: Arrival, waitMs: number): Promise<void> {
  const trouble = await Promise.race([check, pause(waitMs).then(() => null)])
  if (trouble !== null) throw trouble
}

/** `work` throws where the bytes are wrong; `forget` then removes them. */
export function startCheck(
  { signal, log, word }: Arrivals,
  arrival: Arrival,
  work: (signal: AbortSignal) => Promise<void>,
  forget: () => Promise<void>,
): void {
  /** Returned, not thrown: perhaps nobody awaits it. */
  async function check(): Promise<unknown> {
    try {
      await work(AbortSignal.any([signal, arrival.removal.signal]))
      return null
    } catch (thrown) {
      if (arrival.removal.signal.aborted) return thrown
      log.warn(
        `the ${word} of ${arrival.record.name} could not be finished: ${renderError(thrown)}`,
      )
      if (thrown instanceof Fault && WRONG.has(thrown.code)) {
        arrival.failure = thrown
        await forget().catch(() => undefined) // The next sweep repeats it.
      }
      return thrown
    } finally {
      arrival.check = null
    }
  }
  arrival.check = check()
}

export async function removeArrival(arrivals: Arrivals, arrival: Arrival): Promise<void> {
  arrivals.all.delete(arrival.name)
  arrival.removal.abort(new Fault('not-found', `the ${arrivals.word} was removed`))
  await forgetArrival(arrivals, arrival)
}

/** Removes bytes and record; the arrival stays listed. */
export async function forgetArrival({ room, files }: Arrivals, { name }: Arrival): Promise<void> {
  room.release(name)
  await files.remove(name)
}

async function removeAbandoned(arrivals: Arrivals): Promise<void> {
  const { all, silences, log, word } = arrivals
  for (const arrival of all.values()) {
    const state = arrivals.stateOf(arrival)
    const isAbandoned = silences.read(arrival.name) > ABANDONED_MS
    if (state === 'kept' || arrival.isBusy || arrival.check !== null || !isAbandoned) continue
    await removeArrival(arrivals, arrival)
    if (state === 'over') continue
    const { name } = arrival.record
    log.info(`removed the unfinished ${word} of ${name}: it was not continued for a day`)
  }
  await silences.save([...all.keys()])
}

// Receives image files in parts from operators, hashes them on the way, and offers them once they are complete.

const UploadRecordSchema = z.object({
  name: z.string(),
  sizeBytes: z.int().min(1),
  /** Lower case; null: any digest is accepted. */
  sha256: z.string().nullable().catch(null),
  /** The version that the client named. */
  version: z.string().nullable().catch(null),
  /** Bytes that are certainly on the disk. */
  durableBytes: z.int().min(0),
  /** ISO time of the last byte. */
  touchedAt: z.string(),
  isWhole: z.boolean().catch(false),
  /** Lower case; the file is in the folder or on its way there. */
  verified: z.string().nullable().catch(null),
})

type UploadRecord = Readonly<z.infer<typeof UploadRecordSchema>>
type UploadState = Arrival<UploadRecord>

export interface Upload extends Pick<UploadRecord, 'name' | 'sizeBytes' | 'touchedAt'> {
  readonly id: string
  readonly offset: number
  readonly isReceiving: boolean
}

/** `to` is exclusive. */
interface UploadPart {
  readonly from: number
  readonly to: number
  readonly total: number | null
}

interface CompletedUpload {
  readonly name: string
  readonly sizeBytes: number
  /** Null: it is still being verified. */
  readonly sha256: string | null
}

interface UploadsContext extends ArrivalDependencies {
  readonly arrivals: Arrivals<UploadRecord>
}

export async function createUploads(parts: ArrivalDependencies) {
  const arrivals = await openArrivals(parts, {
    word: 'upload',
    schema: UploadRecordSchema,
    unknown: 'there is no such unfinished upload',
    isHashed: true,
    stateOf: (state) => (isUnfinished(state) ? 'unfinished' : 'over'),
  })
  const context = { ...parts, arrivals }
  for (const state of [...arrivals.all.values()].filter(isUnfinished)) {
    // An upload that fitted before the restart fails only when the disk is full.
    await reserve(context, state).catch(() => undefined)
  }
  await arrivals.sweep()
  for (const state of arrivals.all.values()) await resumeEnd(context, state)

  return {
    /** Unfinished ones, the oldest first. */
    list: (): readonly Upload[] => [...arrivals.all.values()].filter(isUnfinished).map(toUpload),
    /** Throws a Fault `not-found` where it is finished, was removed, or never was. */
    find: (id: string): Upload => toUpload(findUnfinished(context, id)),
    create: (request: UploadRequest) => create(context, request),
    /** What came before a failure stays. */
    async append(id: string, part: UploadPart, bytes: AsyncIterable<Uint8Array>): Promise<Upload> {
      const state = findArrival(arrivals, id)
      refuseBusy(state)
      checkPart(state, part)
      const admit = (last: number) => {
        if (last > part.to) throw tooLong()
      }
      await receivePart(arrivals, state, bytes, { from: part.from, admit, news: {} })
      return toUpload(state)
    },
    complete: (id: string, waitMs: number) => complete(context, id, waitMs),
    async remove(id: string) {
      const state = findUnfinished(context, id)
      if (state.isBusy) refuseBusy(state)
      await removeArrival(arrivals, state)
    },
    sweep: arrivals.sweep,
    [Symbol.asyncDispose]: arrivals[Symbol.asyncDispose],
  }
}

const toUpload = ({ name: id, record, offset, isBusy, check }: UploadState): Upload => ({
  id,
  name: record.name,
  sizeBytes: record.sizeBytes,
  offset,
  touchedAt: record.touchedAt,
  isReceiving: isBusy || check !== null,
})

const isPlaced = ({ record: { verified, isWhole } }: UploadState): boolean =>
  verified !== null && !isWhole

const isUnfinished = (state: UploadState): boolean => !isPlaced(state) && state.failure === null

function findUnfinished({ arrivals }: UploadsContext, id: string): UploadState {
  const state = findArrival(arrivals, id)
  if (isUnfinished(state)) return state
  throw new Fault('not-found', 'the upload is finished')
}

async function create(context: UploadsContext, request: UploadRequest): Promise<Upload> {
  const { arrivals, now } = context
  const { name, size_bytes: sizeBytes, sha256, version } = request
  const unfinished = [...arrivals.all.values()].filter(isUnfinished)
  const same = unfinished.find(({ record }) => isSameFile(record, request))
  if (same !== undefined) return toUpload(same)
  if (context.isTaken(name)) throw taken(name)
  if (unfinished.length >= MAX_ARRIVALS) throw tooMany()
  const record = { name, sizeBytes, sha256, version, touchedAt: now().toISOString() }
  const begun = await beginArrival(arrivals, { ...record, ...NOTHING_YET }, async (state) => {
    await reserve(context, state)
    await arrivals.files.save(state, {})
  })
  return toUpload(begun)
}

const reserve = ({ room }: UploadsContext, state: UploadState): Promise<void> =>
  room.reserve(state.name, () => state.record.sizeBytes - state.offset)

const NOTHING_YET = { durableBytes: 0, isWhole: false, verified: null } as const

const isSameFile = (record: UploadRecord, { name, size_bytes, sha256, version }: UploadRequest) =>
  version !== null &&
  record.version === version &&
  record.name === name &&
  record.sizeBytes === size_bytes &&
  record.sha256 === sha256

async function complete(
  context: UploadsContext,
  id: string,
  waitMs: number,
): Promise<CompletedUpload> {
  const { arrivals } = context
  const state = findArrival(arrivals, id)
  const { name, sizeBytes } = state.record
  if (state.failure !== null) throw state.failure
  if (!isPlaced(state)) {
    if (state.check === null) beginEnd(context, state)
    await awaitCheck(state, waitMs)
  }
  return { name, sizeBytes, sha256: isPlaced(state) ? state.record.verified : null }
}

function beginEnd(context: UploadsContext, state: UploadState): void {
  const { name, sizeBytes } = state.record
  refuseBusy(state)
  if (state.offset < sizeBytes) throw unfinished(state)
  if (context.isTaken(name)) throw taken(name)
  startEnd(context, state)
}

const startEnd = (context: UploadsContext, state: UploadState): void =>
  startCheck(
    context.arrivals,
    state,
    (signal) => end(context, state, signal),
    () => forgetArrival(context.arrivals, state),
  )

async function resumeEnd(context: UploadsContext, state: UploadState): Promise<void> {
  const { arrivals } = context
  const { isWhole, verified, sizeBytes } = state.record
  if (!isWhole) return
  const path = arrivals.files.pathOf(state.name)
  const file = await stat(path).catch(() => null)
  // The restart came while the file was moved into the folder.
  const isMoved = verified !== null && (file === null || file.nlink > 1)
  if (!isMoved && state.offset === sizeBytes) return startEnd(context, state)
  if (isMoved) await removeName(path)
  await arrivals.files.save(state, { isWhole: false, verified: isMoved ? verified : null })
}

async function end(context: UploadsContext, state: UploadState, signal: AbortSignal) {
  const { arrivals, dropped, log } = context
  const { name, sizeBytes } = state.record
  await arrivals.files.save(state, { isWhole: true })
  const digests = await verify(context, state, signal)
  await arrivals.files.save(state, { verified: digests.sha256 })
  await dropped.adopt(arrivals.files.pathOf(state.name), name, digests)
  arrivals.room.release(state.name)
  await arrivals.files.save(state, { isWhole: false })
  log.info(`${name} was uploaded (${sizeBytes} bytes, SHA-256 ${digests.sha256})`)
}

/** Publishes the digests of the complete file. */
async function verify(
  { arrivals, indexes }: UploadsContext,
  state: UploadState,
  signal: AbortSignal,
): Promise<FileDigests> {
  const { name, sizeBytes, sha256: expected } = state.record
  await using writer = await arrivals.files.open(state)
  const { handle } = writer
  await writer.start(sizeBytes)
  const sha256 = (await writer.hash(signal)).copy().digest('hex')
  if (expected !== null && expected !== sha256) throw mismatch(name, expected, sha256)
  await checkStart(handle, { name, sizeBytes, format: detectFormat(name) })
  const checkedIndex = await indexes.check(handle, { name, sizeBytes, signal })
  await handle.chmod(0o644)
  await handle.sync()
  return { sha256, checkedIndex }
}

function checkPart({ offset, record }: UploadState, { from, to, total }: UploadPart): void {
  if (total !== record.sizeBytes || to > record.sizeBytes) {
    throw new Fault('input-invalid', `the file has ${record.sizeBytes} bytes`)
  }
  if (from !== offset) throw new Fault('conflict', `the upload continues at byte ${offset}`)
}

function refuseBusy({ isBusy, check }: UploadState): void {
  if (check !== null) throw new Fault('conflict', 'the upload is being verified')
  if (isBusy) throw new Fault('conflict', 'another request is writing to this upload')
}

const taken = (name: string) =>
  new Fault('conflict', `an image named ${name} is in the cache already`, {
    hint: 'Remove it first, or rename the new one.',
  })
const tooMany = () =>
  new Fault('busy', `${MAX_ARRIVALS} uploads are unfinished`, { hint: 'Discard one of them.' })
const tooLong = () => new Fault('too-large', 'more bytes were sent than Content-Range names')
const unfinished = ({ offset, record }: UploadState) =>
  new Fault('conflict', `only ${offset} of ${record.sizeBytes} bytes have been uploaded`)
const mismatch = (name: string, expected: string, found: string) =>
  new Fault('digest-mismatch', `${name} has the SHA-256 ${found}, but ${expected} was expected`, {
    hint: 'Nothing was kept. Check the file and its checksum.',
  })
