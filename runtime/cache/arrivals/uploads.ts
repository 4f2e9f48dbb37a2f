/** Receives image files in parts from operators, hashes them on the way, and offers them once they are complete. */
import { stat } from 'node:fs/promises'
import { z } from 'zod'
import type { UploadRequest } from '#engine/catalog/rules/image-upload.ts'
import { checkStart } from '#engine/image/content/stored-image.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { removeName } from '#kit/host/folders.ts'
import type { FileDigests } from '#cache/blobs/file-stamps.ts'
import {
  awaitCheck,
  beginArrival,
  findArrival,
  forgetArrival,
  MAX_ARRIVALS,
  openArrivals,
  receivePart,
  removeArrival,
  startCheck,
  type Arrival,
  type ArrivalDependencies,
  type Arrivals,
} from './arrivals.ts'

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
