/** Library entry points of the flash module: make a plan, carry it out. */
import { Fault, renderError } from '../core/foundation/fault.ts'
import {
  planFlash,
  renderRefusal,
  type FlashEvent,
  type FlashOptions,
  type FlashPlan as Plan,
} from '../core/flash/flash.ts'
import type { ImageFormat } from '../core/image/image.ts'
import { createDecoders } from '../services/image/decoders.ts'
import { createDisks } from '../services/disk/disks.ts'
import { createFlashChecks } from '../services/flash/flash-checks.ts'
import { createImages } from '../services/image/images.ts'
import { createPartitionTable } from '../services/disk/partition-table.ts'
import { createShell } from '../services/host/shell.ts'
import { createSources } from '../services/image/sources.ts'
import { createWriter } from '../services/flash/writer.ts'
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
 * backup GPT to the end of the disk.
 */
export interface FlashRequest extends Partial<FlashOptions> {
  /** A path, an http(s) URL or an oras reference. */
  readonly image: string
  /** A block device. */
  readonly target: string
  /** What the image is, whatever its name says; null and absent: the name tells. */
  readonly format?: ImageFormat | null
}

/** Whatever speaks against a flash or ends one; `code` is from a closed list, `hint` the way out. */
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
  const { sources, checks } = services()
  const { image: location, target: path, format = null, ...wishes } = request
  try {
    await using source = await sources.open(location, { signal: cancel })
    const wish = { format, sha256: wishes.sha256 ?? null }
    const { image, imageProblem, sha256 } = await checks.checkImage(source, wish, cancel)
    const target = await checks.checkTarget(path, image, cancel)
    const planned = planFlash(image, target, { ...DEFAULTS, ...wishes, sha256 })
    if (planned.ok && imageProblem === null) return { ...planned.value, location }
    const refusals = planned.ok ? [] : planned.refusal.map((one) => renderRefusal(one))
    const reasons = imageProblem === null ? refusals : [imageProblem, ...refusals]
    throw new Fault('plan-refused', reasons.join('; '))
  } catch (thrown) {
    throw asFlashError(thrown, cancel)
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
  const { sources, writer } = services()
  const { progress = () => {}, cancel = new AbortController().signal } = options
  try {
    await using source = await sources.open(plan.location, { signal: cancel })
    for await (const event of writer.execute(plan, source, { signal: cancel })) progress(event)
    progress({ event: 'done' })
  } catch (thrown) {
    progress({ event: 'failed', note: renderError(thrown) })
    throw asFlashError(thrown, cancel)
  }
}

const DEFAULTS: FlashOptions = {
  verify: 'data',
  sha256: null,
  allowPartition: false,
  fixGpt: false,
}

function services() {
  const env = process.env
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const decoders = createDecoders({ shell })
  return {
    sources: createSources({ env }),
    checks: createFlashChecks({ images: createImages({ shell }), decoders, disks }),
    writer: createWriter({ shell, decoders, disks, table: createPartitionTable({ shell }) }),
  }
}

function asFlashError(thrown: unknown, cancel: AbortSignal): FlashError {
  if (thrown instanceof Fault) {
    return new FlashError(thrown.code, thrown.message, { hint: thrown.hint, cause: thrown })
  }
  if (cancel.aborted) return new FlashError('cancelled', 'cancelled', { cause: thrown })
  return new FlashError('tool-failed', renderError(thrown), { cause: thrown })
}
