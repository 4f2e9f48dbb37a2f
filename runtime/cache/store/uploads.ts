/** Receives image files in parts, hashes them on the way, and offers them once they are complete. */
import { randomBytes } from 'node:crypto'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { UploadRequest } from '../../engine/catalog/rules/image-upload.ts'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { hashStart } from '../../kit/host/file-hash.ts'
import { describeFull } from '../blobs/blobs.ts'
import { completeUpload, resumeEnds } from './upload-ends.ts'
import {
  createUpload,
  discardUpload,
  findUpload,
  isPlaced,
  listUnfinished,
  refuseBusy,
  taken,
  toUpload,
  UploadRecordSchema,
  type ReceiverDependencies,
  type Upload,
  type UploadRecord,
  type UploadsContext,
  type UploadState,
} from './upload-states.ts'
import { selectRecords } from '../../kit/host/records.ts'
import { makeFolder, removeName } from '../../kit/host/folders.ts'
import { createSilences } from '../blobs/silences.ts'

/** Where one part belongs; `to` is exclusive. */
interface UploadPart {
  readonly from: number
  readonly to: number
  readonly total: number | null
}

const MAX_UPLOADS = 32
const ABANDONED_MS = 24 * 3_600_000
const SWEEP_MS = 600_000

export async function createUploads(parts: ReceiverDependencies) {
  const folder = join(parts.data, 'uploads')
  await makeFolder(folder, 0o700)
  const closing = new AbortController()
  const notes = selectRecords(parts.records, 'upload', UploadRecordSchema)
  const { signal } = closing
  const silences = await createSilences(parts.records, 'quiet-uploads', parts.elapsed)
  const context: UploadsContext = { ...parts, folder, notes, silences, states: new Map(), signal }
  await restore(context)
  const sweep = () => removeAbandoned(context)
  await sweep()
  await resumeEnds(context)
  const timer = setInterval(() => {
    sweep().catch((thrown: unknown) => parts.log.warn(`uploads: ${renderError(thrown)}`))
  }, SWEEP_MS).unref()

  return {
    /** Unfinished ones, the oldest first. */
    list: (): readonly Upload[] => listUnfinished(context).map(toUpload),
    /** A Fault `not-found` where it is finished, was removed, or never was. */
    find: (id: string): Upload => toUpload(findUnfinished(context, id)),
    /** The unfinished upload of the same file, or a new one. */
    create: (request: UploadRequest) => create(context, request),
    /** Continues at the offset; what came before a failure stays. */
    append: (id: string, part: UploadPart, bytes: AsyncIterable<Uint8Array>) =>
      append(context, id, part, bytes),
    /** Verifies it, waits so long for that, and puts the file into the folder of the cache. */
    complete: (id: string, waitMs: number) => completeUpload(context, id, waitMs),
    /** Removes it and what has come of it. */
    async remove(id: string) {
      const state = findUnfinished(context, id)
      if (state.isBusy) refuseBusy(state)
      await discardUpload(context, state)
    },
    /** Removes uploads that nobody continued for a day. */
    sweep,
    async [Symbol.asyncDispose]() {
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      clearInterval(timer)
      await Promise.all([...context.states.values()].map(({ check }) => check))
    },
  }
}

function findUnfinished(context: UploadsContext, id: string): UploadState {
  const state = findUpload(context, id)
  if (!isPlaced(state.record) && state.failure === null) return state
  throw new Fault('not-found', 'the upload is finished')
}

async function create(context: UploadsContext, request: UploadRequest): Promise<Upload> {
  const { states, room, notes, silences, now } = context
  const { name, size_bytes: sizeBytes, sha256, version } = request
  const unfinished = listUnfinished(context)
  const same = unfinished.find(({ record }) => isSameFile(record, request))
  if (same !== undefined) return toUpload(same)
  if (context.isTaken(name)) throw taken(name)
  if (unfinished.length >= MAX_UPLOADS) throw tooMany()
  const id = randomBytes(16).toString('hex')
  const touchedAt = now().toISOString()
  const record = { name, sizeBytes, sha256, version, touchedAt, ...NOTHING_YET }
  const state = createUpload(id, record, 0)
  // Counted before the disk is asked, so that many at once are no way past the limits.
  states.set(id, state)
  silences.end(id)
  try {
    await room.reserve(id, () => sizeBytes - state.offset)
    await notes.write(id, record)
    return toUpload(state)
  } catch (thrown) {
    await discardUpload(context, state)
    throw thrown
  }
}

const NOTHING_YET = { durableBytes: 0, isWhole: false, verified: null } as const

const isSameFile = (record: UploadRecord, { name, size_bytes, sha256, version }: UploadRequest) =>
  version !== null &&
  record.version === version &&
  record.name === name &&
  record.sizeBytes === size_bytes &&
  record.sha256 === sha256

async function append(
  context: UploadsContext,
  id: string,
  part: UploadPart,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Upload> {
  const state = findUpload(context, id)
  refuseBusy(state)
  checkPart(state, part)
  state.isBusy = true
  try {
    await receive(context, state, part, bytes)
  } catch (thrown) {
    const { freeBytes } = await context.room.space()
    throw describeFull(thrown, freeBytes) ?? thrown
  } finally {
    state.isBusy = false
  }
  return toUpload(state)
}

async function receive(
  { folder, notes, silences, now, signal }: UploadsContext,
  state: UploadState,
  { to }: UploadPart,
  bytes: AsyncIterable<Uint8Array>,
): Promise<void> {
  await using handle = await open(join(folder, state.id), 'a+', 0o600)
  // What a failed write left behind the offset is not part of the file.
  await handle.truncate(state.offset)
  const hash = (state.hash ??= await hashStart(handle, state.offset, signal))
  try {
    for await (const chunk of bytes) {
      signal.throwIfAborted()
      if (state.offset + chunk.length > to) throw tooLong()
      await handle.writeFile(chunk)
      hash.update(chunk)
      state.offset += chunk.length
    }
  } finally {
    await handle.datasync()
    const { offset } = state
    silences.end(state.id)
    state.record = { ...state.record, durableBytes: offset, touchedAt: now().toISOString() }
    await notes.write(state.id, state.record)
  }
}

/** Finds the uploads of the process before, and removes files that belong to none. */
async function restore(context: UploadsContext): Promise<void> {
  const { folder, notes, room, states } = context
  const names = new Set(await readdir(folder))
  for (const [id, record] of await notes.list()) {
    // What was not durable may be anything after a power cut.
    const state = createUpload(id, record, names.has(id) ? record.durableBytes : 0)
    states.set(id, state)
    if (isPlaced(record)) continue
    // What fitted before is not refused now; it fails when the disk is full.
    await room.reserve(id, () => record.sizeBytes - state.offset).catch(() => undefined)
  }
  for (const name of names) if (!states.has(name)) await removeName(join(folder, name))
}

async function removeAbandoned(context: UploadsContext): Promise<void> {
  const { states, silences, log } = context
  for (const state of states.values()) {
    const { name } = state.record
    const isAbandoned = silences.read(state.id) > ABANDONED_MS
    if (state.isBusy || state.check !== null || !isAbandoned) continue
    const isUnfinished = !isPlaced(state.record) && state.failure === null
    await discardUpload(context, state)
    if (!isUnfinished) continue
    log.info(`removed the unfinished upload of ${name}: nobody continued it for a day`)
  }
  await silences.save([...states.keys()])
}

function checkPart({ offset, record }: UploadState, { from, to, total }: UploadPart): void {
  if (total !== record.sizeBytes || to > record.sizeBytes) {
    throw new Fault('input-invalid', `the file has ${record.sizeBytes} bytes`)
  }
  if (from !== offset) throw new Fault('conflict', `the upload continues at byte ${offset}`)
}

const tooMany = () =>
  new Fault('busy', `${MAX_UPLOADS} uploads are unfinished`, { hint: 'Discard one of them.' })
const tooLong = () => new Fault('too-large', 'more bytes were sent than Content-Range names')
