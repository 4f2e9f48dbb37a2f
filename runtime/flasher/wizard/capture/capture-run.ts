/** Opens the disk that a person chose to capture, and makes its image; says how it ended. */
import {
  CAPTURE_LEVEL,
  decideIdentity,
  describeOrigin,
  type CaptureOutcome,
  type CaptureDestination,
} from '#engine/capture/rules/capture.ts'
import type { WriteProgress } from '#engine/flash/rules/flash.ts'
import { Fault, hintOf, renderError } from '#kit/foundation/fault.ts'
import {
  checkFile,
  checkRoom,
  openCapture,
  runCapture,
  toFile,
  type CaptureSink,
  type OpenedCapture,
} from '#engine/capture/capturer.ts'
import { toUpload } from '#engine/capture/upload-client.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { DiskChoice } from '#flasher/order/rules/flash-choice.ts'

export interface ChosenCapture {
  readonly disk: DiskChoice
  readonly destination: CaptureDestination
  readonly generalize: boolean
}

interface CaptureEnvironment {
  readonly env: Environment
  readonly isRoot: boolean
  readonly signal: AbortSignal
}

/** The disk is held until it is disposed of. */
export interface CheckedCapture extends AsyncDisposable {
  readonly opened: OpenedCapture
  /** A warning about room for the image; null: there is plenty. */
  readonly room: string | null
}

/** Rejects with a Fault where the disk cannot be captured, or the image surely not be stored. */
export async function checkCapture(
  { disk, destination, generalize }: ChosenCapture,
  { env, isRoot, signal }: CaptureEnvironment,
): Promise<CheckedCapture> {
  const file = destination.kind === 'file' ? await checkFile(destination.path) : null
  await using undo = new AsyncDisposableStack()
  const order = { source: disk.path, chosen: disk.identity, generalize }
  const opened = undo.use(await openCapture({ env, isRoot }, order, signal))
  const room = file === null ? null : checkRoom(opened, file.freeBytes)
  const held = undo.move()
  return { opened, room, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

interface CaptureEvents {
  readonly onProgress: (progress: { readonly event: 'writing' } & WriteProgress) => void
  /** Bytes of the image so far, compressed. */
  readonly onStored: (bytes: number) => void
  /** All is sent; the cache verifies it. */
  readonly onSent: () => void
}

/** Never throws: the outcome holds the reason of a failure. */
export async function makeCapture(
  chosen: ChosenCapture,
  opened: OpenedCapture,
  { env, signal }: CaptureEnvironment,
  { onProgress, onStored, onSent }: CaptureEvents,
): Promise<CaptureOutcome> {
  const { generalize } = chosen
  const identity = decideIdentity(opened.parts)
  try {
    const sink = openSink(chosen, opened, { env, signal, onSent })
    const made = await runCapture(opened, counted(sink, onStored), {
      level: CAPTURE_LEVEL,
      signal,
      onProgress,
    })
    return { ...made, kind: 'done', identity: generalize ? { kind: 'absent' } : identity }
  } catch (thrown) {
    const isCancelled = signal.aborted && !(thrown instanceof Fault)
    return {
      kind: isCancelled ? 'cancelled' : 'failed',
      reason: renderError(thrown),
      hint: hintOf(thrown) ?? null,
    }
  }
}

function openSink(
  { destination, generalize }: ChosenCapture,
  opened: OpenedCapture,
  context: Pick<CaptureEnvironment, 'env' | 'signal'> & Pick<CaptureEvents, 'onSent'>,
): CaptureSink {
  if (destination.kind === 'file') return toFile(destination.path, context.env)
  const { base, name } = destination
  const { source, warnings } = describeOrigin(opened, generalize)
  return toUpload({ base, name, token: destination.token ?? '', source, ...context }, warnings)
}

const counted =
  (sink: CaptureSink, onStored: CaptureEvents['onStored']): CaptureSink =>
  (write) => {
    let stored = 0
    return sink((put) =>
      write(async (bytes) => {
        await put(bytes)
        stored += bytes.length
        onStored(stored)
      }),
    )
  }
