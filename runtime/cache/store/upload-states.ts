/** What the cache knows of each upload, in memory and on disk. */
import type { Hash } from 'node:crypto'
import { join } from 'node:path'
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { Fault } from '../../kit/foundation/fault.ts'
import type { RecordsOf } from '../../kit/host/records.ts'
import type { BlobRoom } from '../blobs/blob-room.ts'
import type { DroppedFiles } from './dropped-files.ts'
import type { IndexChecks } from '../../engine/image/frame/index-checks.ts'
import type { Silences } from '../blobs/silences.ts'
import { removeName } from '../../kit/host/folders.ts'

/** Kept on disk, so that uploads go on after a restart. */
export const UploadRecordSchema = z.object({
  name: z.string(),
  sizeBytes: z.int().min(1),
  /** Lower case; null: whatever comes is right. */
  sha256: z.string().nullable().catch(null),
  /** As the client named it. */
  version: z.string().nullable().catch(null),
  /** So many bytes are on the disk for sure. */
  durableBytes: z.int().min(0),
  /** ISO time of the last byte. */
  touchedAt: z.string(),
  /** All of it is here, and it is being verified. */
  isWhole: z.boolean().catch(false),
  /** The digest of what was verified, and is in the folder or on its way there. */
  verified: z.string().nullable().catch(null),
})

export type UploadRecord = Readonly<z.infer<typeof UploadRecordSchema>>

export interface Upload {
  readonly id: string
  readonly name: string
  readonly sizeBytes: number
  /** So many bytes are here. */
  readonly offset: number
  /** ISO time of the last byte. */
  readonly touchedAt: string
  /** A part of it is being received, or it is being verified. */
  readonly isReceiving: boolean
}

/** What receives files in parts, whoever sends them, is given. */
export interface ReceiverDependencies {
  /** The cache's own folder: `.cache`. */
  readonly data: string
  readonly records: Storage
  readonly room: Pick<BlobRoom, 'reserve' | 'release' | 'space'>
  readonly dropped: Pick<DroppedFiles, 'place'>
  readonly indexes: IndexChecks
  /** Whether an image has that name. */
  isTaken(name: string): boolean
  now(): Date
  /** Milliseconds, of a clock that nobody sets. */
  elapsed(): number
  readonly log: { info(message: string): void; warn(message: string): void }
}

export interface UploadState {
  readonly id: string
  record: UploadRecord
  /** Of the bytes up to the offset; null: it is computed before the next part. */
  hash: Hash | null
  offset: number
  /** A part is being received. */
  isBusy: boolean
  /** While it is verified; what went wrong, or null. */
  check: Promise<unknown> | null
  /** Why nothing was kept of it, for a client that asks again. */
  failure: Fault | null
  /** Aborted when it is removed. */
  readonly ending: AbortController
}

export interface UploadsContext extends ReceiverDependencies {
  readonly folder: string
  readonly notes: RecordsOf<UploadRecord>
  readonly silences: Silences
  readonly states: Map<string, UploadState>
  /** Aborted when the cache is closed. */
  readonly signal: AbortSignal
}

export const createUpload = (id: string, record: UploadRecord, offset: number): UploadState => ({
  id,
  record,
  hash: null,
  offset,
  isBusy: false,
  check: null,
  failure: null,
  ending: new AbortController(),
})

export const toUpload = ({ id, record, offset, isBusy, check }: UploadState): Upload => ({
  id,
  name: record.name,
  sizeBytes: record.sizeBytes,
  offset,
  touchedAt: record.touchedAt,
  isReceiving: isBusy || check !== null,
})

/** Those that are not in the folder yet, and still can be. */
export const listUnfinished = ({ states }: UploadsContext): readonly UploadState[] =>
  [...states.values()].filter(({ record, failure }) => !isPlaced(record) && failure === null)

export const isPlaced = ({ verified, isWhole }: UploadRecord): boolean =>
  verified !== null && !isWhole

export function findUpload({ states }: UploadsContext, id: string): UploadState {
  const state = states.get(id)
  if (state === undefined) throw new Fault('not-found', 'there is no such unfinished upload')
  return state
}

export async function saveUpload(
  { notes }: UploadsContext,
  state: UploadState,
  news: Partial<UploadRecord>,
): Promise<void> {
  state.record = { ...state.record, ...news }
  await notes.write(state.id, state.record)
}

export async function discardUpload(context: UploadsContext, state: UploadState): Promise<void> {
  context.states.delete(state.id)
  state.ending.abort(new Fault('not-found', 'the upload was removed'))
  await removeUploaded(context, state)
}

/** The state stays, so that the client learns why, however often it asks. */
export async function removeUploaded(
  { folder, notes, room }: UploadsContext,
  { id }: UploadState,
): Promise<void> {
  room.release(id)
  await notes.remove(id)
  await removeName(join(folder, id))
}

export function refuseBusy({ isBusy, check }: UploadState): void {
  if (check !== null) throw new Fault('conflict', 'the upload is being verified')
  if (isBusy) throw new Fault('conflict', 'another request is writing to this upload')
}

export const taken = (name: string) =>
  new Fault('conflict', `an image named ${name} is in the cache already`, {
    hint: 'Remove it first, or rename the new one.',
  })
