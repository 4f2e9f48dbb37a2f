/** Verifies uploads that are complete, and puts them into the folder of the cache. */
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault, renderError, type FaultCode } from '../../kit/foundation/fault.ts'
import { detectFormat } from '../../engine/image/rules/image.ts'
import { checkStart } from '../../engine/image/content/stored-image.ts'
import { hashStart } from '../../kit/host/file-hash.ts'
import { pause } from '../../kit/host/watch.ts'
import type { FileDigests } from '../blobs/file-stamps.ts'
import {
  findUpload,
  isPlaced,
  refuseBusy,
  removeUploaded,
  saveUpload,
  taken,
  type UploadsContext,
  type UploadState,
} from './upload-states.ts'
import { removeName } from '../../kit/host/folders.ts'

interface CompletedUpload {
  readonly name: string
  readonly sizeBytes: number
  /** Null: it is still being verified. */
  readonly sha256: string | null
}

/** Waits so long for the verification; asked again, it answers the same. */
export async function completeUpload(
  context: UploadsContext,
  id: string,
  waitMs: number,
): Promise<CompletedUpload> {
  const state = findUpload(context, id)
  const { name, sizeBytes } = state.record
  if (state.failure !== null) throw state.failure
  if (!isPlaced(state.record)) {
    if (state.check === null) begin(context, state)
    const trouble = await Promise.race([state.check, pause(waitMs).then(() => null)])
    if (trouble !== null) throw trouble
  }
  return { name, sizeBytes, sha256: isPlaced(state.record) ? state.record.verified : null }
}

function begin(context: UploadsContext, state: UploadState): void {
  const { name, sizeBytes } = state.record
  refuseBusy(state)
  if (state.offset < sizeBytes) throw unfinished(state)
  if (context.isTaken(name)) throw taken(name)
  state.check = finish(context, state)
}

/** Goes on with what the process before was verifying. */
export async function resumeEnds(context: UploadsContext): Promise<void> {
  const { folder, states } = context
  for (const state of states.values()) {
    const { isWhole, verified } = state.record
    if (!isWhole) continue
    const file = await stat(join(folder, state.id)).catch(() => null)
    // It was being moved into the folder of the cache, and is there.
    if (verified !== null && (file === null || file.nlink > 1)) {
      await removeName(join(folder, state.id))
      await saveUpload(context, state, { isWhole: false })
    } else if (file === null) await saveUpload(context, state, { isWhole: false })
    else state.check = finish(context, state)
  }
}

/** Never throws: nobody may be waiting any more. */
async function finish(context: UploadsContext, state: UploadState): Promise<unknown> {
  const { folder, dropped, log, room } = context
  const { name, sizeBytes } = state.record
  const path = join(folder, state.id)
  try {
    await saveUpload(context, state, { isWhole: true })
    const digests = await verify(context, state, path)
    await saveUpload(context, state, { verified: digests.sha256 })
    await dropped.place(path, name, digests)
    room.release(state.id)
    await saveUpload(context, state, { isWhole: false })
    log.info(`${name} was uploaded (${sizeBytes} bytes, SHA-256 ${digests.sha256})`)
    return null
  } catch (thrown) {
    if (state.ending.signal.aborted) return thrown
    log.warn(`the upload of ${name} could not be finished: ${renderError(thrown)}`)
    // The file is wrong, rather than our disk being in trouble.
    if (thrown instanceof Fault && WRONG.has(thrown.code)) {
      state.failure = thrown
      await removeUploaded(context, state)
    }
    return thrown
  } finally {
    state.check = null
  }
}

const WRONG: ReadonlySet<FaultCode> = new Set(['digest-mismatch', 'image-broken', 'plan-refused'])

/** The digests of the complete file, which everybody may read from now on. */
async function verify(
  { indexes, signal: closing }: UploadsContext,
  state: UploadState,
  path: string,
): Promise<FileDigests> {
  const { name, sizeBytes, sha256: expected } = state.record
  const signal = AbortSignal.any([closing, state.ending.signal])
  await using handle = await open(path, 'r+')
  const hash = state.hash?.copy() ?? (await hashStart(handle, state.offset, signal))
  const sha256 = hash.digest('hex')
  if (expected !== null && expected !== sha256) throw mismatch(name, expected, sha256)
  await checkStart(handle, { name, sizeBytes, format: detectFormat(name) })
  const checkedIndex = await indexes.check(handle, { name, sizeBytes, signal })
  await handle.chmod(0o644)
  await handle.sync()
  return { sha256, checkedIndex }
}

const unfinished = ({ offset, record }: UploadState) =>
  new Fault('conflict', `only ${offset} of ${record.sizeBytes} bytes have been uploaded`)
const mismatch = (name: string, expected: string, found: string) =>
  new Fault('digest-mismatch', `${name} has the SHA-256 ${found}, but ${expected} was expected`, {
    hint: 'Nothing was kept. Check the file and its checksum.',
  })
