/** Receives a captured image part by part, and verifies it once it is complete. */
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  MAX_CAPTURE_PART_BYTES,
  maxBytesOf,
  type CaptureEnd,
  type CaptureSource,
} from '../../engine/capture/rules/capture-upload.ts'
import { Fault, renderError, type FaultCode } from '../../kit/foundation/fault.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import { pause } from '../../kit/host/watch.ts'
import { describeFull } from '../blobs/blobs.ts'
import { checkCapture } from './capture-check.ts'
import {
  findCapture,
  forgetCapture,
  saveCapture,
  toCapture,
  type Capture,
  type CapturesContext,
  type CaptureState,
} from './capture-states.ts'

/** `offset`: it goes on elsewhere; `writing`: another request sends a part at the moment. */
export type AppendRefusal =
  | { readonly why: 'offset'; readonly offset: number }
  | { readonly why: 'writing' }

/** Where a part begins, and how long it says it is; null: it does not say. */
export interface CapturePart {
  readonly offset: number
  readonly length: number | null
}

export async function appendPart(
  context: CapturesContext,
  id: string,
  part: CapturePart,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Result<Capture, AppendRefusal>> {
  const state = findCapture(context, id)
  const refusal = findRefusal(state, part)
  if (refusal !== null) return refuse(refusal)
  state.isBusy = true
  let left = part.length ?? MAX_CAPTURE_PART_BYTES
  try {
    await context.room.reserve(id, () => Math.max(0, left))
    await receive(context, state, bytes, (count) => {
      left -= count
    })
    return accept(toCapture(state))
  } catch (thrown) {
    const { freeBytes } = await context.room.space()
    throw describeFull(thrown, freeBytes) ?? thrown
  } finally {
    context.room.release(id)
    state.isBusy = false
  }
}

/** Throws a Fault where no part is taken any more. */
function findRefusal(state: CaptureState, { offset, length }: CapturePart): AppendRefusal | null {
  const { durableBytes, end, source } = state.record
  if (end !== null || state.check !== null || state.failure !== null) throw complete()
  if (state.isBusy) return { why: 'writing' }
  if (offset !== durableBytes) return { why: 'offset', offset: durableBytes }
  if (offset + (length ?? 0) > maxBytesOf(source)) throw tooLong(source)
  return null
}

async function receive(
  context: CapturesContext,
  state: CaptureState,
  bytes: AsyncIterable<Uint8Array>,
  onBytes: (count: number) => void,
): Promise<void> {
  const { durableBytes: from, source } = state.record
  await using handle = await open(join(context.folder, state.id), 'r+')
  // What a failed write left behind the offset is not part of the file.
  await handle.truncate(from)
  let at = from
  try {
    for await (const chunk of bytes) {
      context.signal.throwIfAborted()
      if (state.isGone) throw gone()
      if (at + chunk.length > maxBytesOf(source)) throw tooLong(source)
      await writeAll(handle, chunk, at)
      at += chunk.length
      onBytes(chunk.length)
    }
  } finally {
    // The offset never says more than what a power cut leaves.
    if (at > from && !state.isGone) {
      await handle.datasync()
      await saveCapture(context, state, { durableBytes: at, announced: null })
    }
  }
  if (state.isGone) throw gone()
}

async function writeAll(handle: FileHandle, chunk: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < chunk.length;) {
    done += (await handle.write(chunk, done, chunk.length - done, at + done)).bytesWritten
  }
}

export async function finishCapture(
  context: CapturesContext,
  id: string,
  end: CaptureEnd,
  waitMs: number,
): Promise<Result<Capture, AppendRefusal>> {
  const state = findCapture(context, id)
  if (state.failure !== null) throw state.failure
  const refusal = announceEnd(context, state, end)
  if (refusal !== null) return refuse(refusal)
  if (state.check === null) return accept(toCapture(state))
  const trouble = await Promise.race([state.check.done, pause(waitMs).then(() => null)])
  if (trouble !== null) throw trouble
  return accept(toCapture(state))
}

/** Begins to verify it, unless that is under way or done. Throws a Fault for another end than before. */
function announceEnd(
  context: CapturesContext,
  state: CaptureState,
  end: CaptureEnd,
): AppendRefusal | null {
  const announced = state.record.end ?? state.check?.end
  if (announced !== undefined) {
    if (isSameEnd(announced, end)) return null
    throw complete()
  }
  const refusal = findRefusal(state, atEnd(end))
  if (refusal === null) state.check = { end, done: verify(context, state, end) }
  return refusal
}

/** Goes on with what the process before was verifying. */
export function resumeChecks(context: CapturesContext): void {
  for (const state of context.states.values()) {
    const { announced, end } = state.record
    if (end !== null || announced === null) continue
    state.check = { end: announced, done: verify(context, state, announced) }
  }
}

/** As a part behind the last byte: what speaks against that speaks against the end as well. */
const atEnd = ({ bytes }: CaptureEnd): CapturePart => ({ offset: bytes, length: 0 })

const isSameEnd = (a: CaptureEnd, b: CaptureEnd): boolean =>
  a.bytes === b.bytes && a.sha256 === b.sha256 && a.index_sha256 === b.index_sha256

/** Never throws: nobody may be waiting any more. */
async function verify(
  context: CapturesContext,
  state: CaptureState,
  end: CaptureEnd,
): Promise<unknown> {
  const { folder, log, indexes } = context
  const { name } = state.record
  const file = { path: join(folder, state.id), name }
  const signal = AbortSignal.any([context.signal, state.ending.signal])
  try {
    await saveCapture(context, state, { announced: end })
    await checkCapture(file, end, indexes, signal)
    await saveCapture(context, state, { announced: null, end, isDecoded: true })
    log.info(`${name} was captured (${end.bytes} bytes, SHA-256 ${end.sha256}): it waits`)
    return null
  } catch (thrown) {
    // The bytes are not what was announced, rather than our disk being in trouble.
    const isWrong = thrown instanceof Fault && WRONG.has(thrown.code)
    log.warn(`the capture ${name} could not be verified: ${renderError(thrown)}`)
    if (isWrong && !state.isGone) {
      state.failure = thrown
      await forgetCapture(context, state).catch(() => undefined) // The next sweep repeats it.
    }
    return thrown
  } finally {
    state.check = null
  }
}

const WRONG: ReadonlySet<FaultCode> = new Set(['digest-mismatch', 'image-broken'])

const complete = () => new Fault('conflict', 'the capture is complete already')
const gone = () => new Fault('not-found', 'the capture was removed')
const tooLong = ({ disk }: CaptureSource) =>
  new Fault('too-large', `an image of a disk of ${disk.size_bytes} bytes is never that large`)
