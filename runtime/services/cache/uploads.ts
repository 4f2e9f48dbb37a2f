/** Receives image files in parts, hashes them on the way, and offers them once they are complete. */
import type { Hash } from 'node:crypto'
import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Storage } from 'unstorage'
import type { UploadRequest } from '../../core/catalog/image-upload.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { hashStart } from '../host/file-hash.ts'
import type { BlobRoom } from './blob-room.ts'
import { describeFull } from './blobs.ts'
import type { DroppedFiles } from './dropped-files.ts'
import { UploadRecordSchema, type UploadRecord } from './upload-records.ts'
import { selectRecords, type RecordsOf } from '../host/records.ts'

export interface Upload {
  readonly id: string
  readonly name: string
  readonly sizeBytes: number
  /** So many bytes are here. */
  readonly offset: number
  /** ISO time of the last byte. */
  readonly touchedAt: string
  /** A part of it is being received. */
  readonly isReceiving: boolean
}

/** Where one part belongs; `to` is exclusive. */
interface UploadPart {
  readonly from: number
  readonly to: number
  readonly total: number | null
}

/** What receives files in parts, whoever sends them, is given. */
export interface ReceiverDependencies {
  /** The cache's own folder: `.cache`. */
  readonly data: string
  readonly records: Storage
  readonly room: Pick<BlobRoom, 'reserve' | 'release' | 'space'>
  readonly dropped: Pick<DroppedFiles, 'place'>
  /** Whether an image has that name. */
  isTaken(name: string): boolean
  now(): Date
  readonly log: { info(message: string): void; warn(message: string): void }
}

interface State {
  readonly id: string
  record: UploadRecord
  /** Of the bytes up to the offset; null: it is computed before the next part. */
  hash: Hash | null
  offset: number
  isBusy: boolean
}

interface Context extends ReceiverDependencies {
  readonly folder: string
  readonly notes: RecordsOf<UploadRecord>
  readonly states: Map<string, State>
  /** Aborted when the cache is closed. */
  readonly signal: AbortSignal
}

const MAX_UPLOADS = 32
const ABANDONED_MS = 24 * 3_600_000
const SWEEP_MS = 600_000

export async function createUploads(parts: ReceiverDependencies) {
  const folder = join(parts.data, 'uploads')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const closing = new AbortController()
  const notes = selectRecords(parts.records, 'upload', UploadRecordSchema)
  const context: Context = { ...parts, folder, notes, states: new Map(), signal: closing.signal }
  await restore(context)
  const sweep = () => removeAbandoned(context)
  await sweep()
  const timer = setInterval(() => {
    sweep().catch((thrown: unknown) => parts.log.warn(`uploads: ${renderError(thrown)}`))
  }, SWEEP_MS).unref()

  return {
    /** Unfinished ones, the oldest first. */
    list: (): readonly Upload[] => [...context.states.values()].map(toUpload),
    /** A Fault `not-found` where it is finished, was removed, or never was. */
    find: (id: string): Upload => toUpload(find(context, id)),
    /** The unfinished upload of the same file, or a new one. */
    create: (request: UploadRequest) => create(context, request),
    /** Continues at the offset; what came before a failure stays. */
    append: (id: string, part: UploadPart, bytes: AsyncIterable<Uint8Array>) =>
      append(context, id, part, bytes),
    /** Checks the digest and puts the file into the folder of the cache. */
    complete: (id: string) => complete(context, id),
    /** Removes it and what has come of it. */
    async remove(id: string) {
      const state = find(context, id)
      refuseBusy(state)
      await discard(context, state)
    },
    /** Removes uploads that nobody continued for a day. */
    sweep,
    async [Symbol.asyncDispose]() {
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      clearInterval(timer)
    },
  }
}

const toUpload = ({ id, record, offset, isBusy }: State): Upload => ({
  id,
  name: record.name,
  sizeBytes: record.sizeBytes,
  offset,
  touchedAt: record.touchedAt,
  isReceiving: isBusy,
})

function find({ states }: Context, id: string): State {
  const state = states.get(id)
  if (state === undefined) throw new Fault('not-found', 'there is no such unfinished upload')
  return state
}

async function create(context: Context, request: UploadRequest): Promise<Upload> {
  const { states, room, notes, now } = context
  const { name, size_bytes: sizeBytes, sha256, version } = request
  const same = [...states.values()].find(({ record }) => isSameFile(record, request))
  if (same !== undefined) return toUpload(same)
  if (context.isTaken(name)) throw taken(name)
  if (states.size >= MAX_UPLOADS) throw tooMany()
  const id = randomBytes(16).toString('hex')
  const touchedAt = now().toISOString()
  const record = { name, sizeBytes, sha256, version, durableBytes: 0, touchedAt }
  const state: State = { id, record, hash: null, offset: 0, isBusy: false }
  // Counted before the disk is asked, so that many at once are no way past the limits.
  states.set(id, state)
  try {
    await room.reserve(id, () => sizeBytes - state.offset)
    await notes.write(id, record)
    return toUpload(state)
  } catch (thrown) {
    await discard(context, state)
    throw thrown
  }
}

const isSameFile = (record: UploadRecord, { name, size_bytes, sha256, version }: UploadRequest) =>
  version !== null &&
  record.version === version &&
  record.name === name &&
  record.sizeBytes === size_bytes &&
  record.sha256 === sha256

async function append(
  context: Context,
  id: string,
  part: UploadPart,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Upload> {
  const state = find(context, id)
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
  { folder, notes, now, signal }: Context,
  state: State,
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
    state.record = { ...state.record, durableBytes: offset, touchedAt: now().toISOString() }
    await notes.write(state.id, state.record)
  }
}

async function complete(context: Context, id: string) {
  const { folder, dropped, notes, room, states, signal } = context
  const state = find(context, id)
  refuseBusy(state)
  const { name, sizeBytes, sha256: expected } = state.record
  if (state.offset < sizeBytes) throw unfinished(state)
  if (context.isTaken(name)) throw taken(name)
  state.isBusy = true
  try {
    const path = join(folder, id)
    const sha256 = await finish(path, state, signal)
    if (expected !== null && expected !== sha256) {
      await discard(context, state)
      throw mismatch(name, expected, sha256)
    }
    await dropped.place(path, name, sha256)
    states.delete(id)
    room.release(id)
    await notes.remove(id)
    return { name, sha256, sizeBytes }
  } finally {
    state.isBusy = false
  }
}

/** The digest of the complete file, which everybody may read from now on. */
async function finish(path: string, state: State, signal: AbortSignal): Promise<string> {
  await using handle = await open(path, 'r+')
  const hash = state.hash?.copy() ?? (await hashStart(handle, state.offset, signal))
  await handle.chmod(0o644)
  await handle.sync()
  return hash.digest('hex')
}

async function discard({ folder, notes, room, states }: Context, { id }: State): Promise<void> {
  states.delete(id)
  room.release(id)
  await notes.remove(id)
  await rm(join(folder, id), { force: true })
}

/** Finds the uploads of the process before, and removes files that belong to none. */
async function restore(context: Context): Promise<void> {
  const { folder, notes, room, states } = context
  const names = new Set(await readdir(folder))
  for (const [id, record] of await notes.list()) {
    // What was not durable may be anything after a power cut.
    const offset = names.has(id) ? record.durableBytes : 0
    const state: State = { id, record, hash: null, offset, isBusy: false }
    states.set(id, state)
    // What fitted before is not refused now; it fails when the disk is full.
    await room.reserve(id, () => record.sizeBytes - state.offset).catch(() => undefined)
  }
  for (const name of names) if (!states.has(name)) await rm(join(folder, name), { force: true })
}

async function removeAbandoned(context: Context): Promise<void> {
  const { states, now, log } = context
  for (const state of states.values()) {
    const { name, touchedAt } = state.record
    const isAbandoned = now().getTime() - Date.parse(touchedAt) > ABANDONED_MS
    if (state.isBusy || !isAbandoned) continue
    await discard(context, state)
    log.info(`removed the unfinished upload of ${name}: nobody continued it for a day`)
  }
}

function refuseBusy({ isBusy }: State): void {
  if (isBusy) throw new Fault('conflict', 'another request is writing to this upload')
}

function checkPart({ offset, record }: State, { from, to, total }: UploadPart): void {
  if (total !== record.sizeBytes || to > record.sizeBytes) {
    throw new Fault('input-invalid', `the file has ${record.sizeBytes} bytes`)
  }
  if (from !== offset) throw new Fault('conflict', `the upload continues at byte ${offset}`)
}

const taken = (name: string) =>
  new Fault('conflict', `an image named ${name} is in the cache already`, {
    hint: 'Remove it first, or rename the new one.',
  })
const tooMany = () =>
  new Fault('busy', `${MAX_UPLOADS} uploads are unfinished`, { hint: 'Discard one of them.' })
const tooLong = () => new Fault('too-large', 'more bytes were sent than Content-Range names')
const unfinished = ({ offset, record }: State) =>
  new Fault('conflict', `only ${offset} of ${record.sizeBytes} bytes have been uploaded`)
const mismatch = (name: string, expected: string, found: string) =>
  new Fault('digest-mismatch', `${name} has the SHA-256 ${found}, but ${expected} was expected`, {
    hint: 'Nothing was kept. Check the file and its checksum.',
  })
