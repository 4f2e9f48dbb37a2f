/** Library entry points of the flash module: make a plan, carry it out. */
import { Fault } from '../kit/foundation/fault.ts'
import type { FlashEvent, FlashOptions, FlashPlan as Plan } from '../engine/flash/rules/flash.ts'
import { describeFailure, type FlashFailure } from '../engine/flash/rules/outcome.ts'
import { accept } from '../kit/foundation/result.ts'
import type { ImageFormat } from '../engine/image/rules/image.ts'
import { createFlasher } from '../engine/flash/flasher.ts'
import { LibraryError } from './library-error.ts'

/** One event of a flash ("Flash lifecycle events"); sizes in bytes, `rate` in bytes per second. */
export type FlashProgress = FlashEvent
export type ProgressCallback = (progress: FlashProgress) => void

/** A flash that may go ahead; `location` is the image's path or URL as it was given. */
export interface FlashPlan extends Plan {
  readonly location: string
}

/**
 * `sha256`: of the stored bytes, checked while they are read. `verify`: how the disk is read back
 * (default: all that was written). `allowPartition`: the target may be a partition. `fixGpt`: moves the
 * backup GPT to the end of the disk. `grow`: has the last partition and its file system fill the disk.
 */
export interface FlashRequest extends Partial<FlashOptions> {
  /** A path, an http(s) URL or an oras reference. */
  readonly image: string
  /** A block device. */
  readonly target: string
  /** What the image is, whatever its name says; null and absent: its name decides. */
  readonly format?: ImageFormat | null
}

/** Whatever speaks against a flash or ends one; `code` is from a closed list, `hint` says how to fix it. */
export class FlashError extends LibraryError {
  override readonly name = 'FlashError'
}

/**
 * Looks at image and disk and plans the flash; nothing is written. The digest is the one of the
 * request, else of a `.sha256` file beside a local image, else what the source promises. Rejects with
 * a FlashError: `plan-refused` with every reason where the two do not go together.
 */
export async function makePlan(
  request: FlashRequest,
  { cancel = new AbortController().signal }: { readonly cancel?: AbortSignal } = {},
): Promise<FlashPlan> {
  const { image, target, format = null, ...given } = request
  const options = { ...DEFAULTS, ...given }
  try {
    const flasher = createFlasher({ env: process.env })
    await using planned = await flasher.plan({ image, target, format, options }, cancel)
    if (planned.plan.ok) return { ...planned.plan.value, location: image }
    throw new Fault('plan-refused', planned.plan.refusal.join('; '))
  } catch (thrown) {
    throw toError(describeFailure(thrown, { target, stage: 'checking', isAborted: cancel.aborted }))
  }
}

/**
 * Writes what the plan says; needs root. Resolves when the disk holds the image, checked as planned.
 * Rejects with a FlashError; the disk then has no partition table, so that it cannot boot.
 * `cancel` ends it within about a second.
 */
export async function executePlan(
  plan: FlashPlan,
  options: { readonly progress?: ProgressCallback; readonly cancel?: AbortSignal } = {},
): Promise<void> {
  const { progress = () => {}, cancel: signal = new AbortController().signal } = options
  const { location: image, ...planned } = plan
  const order = { image, target: plan.target.path }
  const ready = { order, plan: accept(planned) }
  const flasher = createFlasher({ env: process.env })
  const outcome = await flasher.run(ready, { signal, onEvent: (event) => progress(event) })
  if (outcome.kind === 'done') return progress({ event: 'done' })
  progress({ event: 'failed', note: outcome.reason })
  throw toError(outcome)
}

const DEFAULTS: FlashOptions = {
  verify: 'data',
  sha256: null,
  allowPartition: false,
  fixGpt: false,
  grow: false,
}

const toError = ({ code, reason, hint, cause }: FlashFailure) =>
  new FlashError(code === 'unexpected' ? 'tool-failed' : code, reason, {
    hint: hint ?? undefined,
    cause,
  })
