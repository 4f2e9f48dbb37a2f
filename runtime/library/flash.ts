/** Library entry points of the flash module: make a plan, carry it out. */
import { Fault, renderError, type FaultCode } from '../core/fault.ts'
import {
  planFlash,
  renderRefusal,
  type FlashEvent,
  type FlashOptions,
  type FlashPlan as Plan,
} from '../core/flash.ts'
import { detectFormat, type ImageFormat } from '../core/image.ts'
import { createDecoders } from '../services/decoders.ts'
import { createDisks } from '../services/disks.ts'
import { createImages } from '../services/images.ts'
import { createPartitionTable } from '../services/partition-table.ts'
import { createShell } from '../services/shell.ts'
import { createSources } from '../services/sources.ts'
import { createWriter } from '../services/writer.ts'

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
export class FlashError extends Error {
  override readonly name = 'FlashError'
  readonly code: FaultCode
  readonly hint: string | undefined

  constructor(code: FaultCode, message: string, hint: string | undefined, cause: unknown) {
    super(message, { cause })
    this.code = code
    this.hint = hint
  }
}

/**
 * Looks at image and disk and plans the flash; nothing is written. Rejects with a FlashError:
 * `plan-refused` with every reason where the two do not go together.
 */
export async function makePlan(request: FlashRequest): Promise<FlashPlan> {
  const { shell, sources } = services()
  try {
    await using source = await sources.open(request.image)
    const format = request.format ?? detectFormat(source.fileName)
    const image = await createImages({ shell }).probe(source, format)
    if (format !== null) await createDecoders({ shell }).check(format)
    const target = await createDisks({ shell }).probe(request.target, source.path)
    const planned = planFlash(image, target, {
      ...DEFAULTS,
      ...request,
      sha256: request.sha256 ?? source.sha256 ?? null,
    })
    if (planned.ok) return { ...planned.value, location: request.image }
    throw new Fault('plan-refused', planned.refusal.map((one) => renderRefusal(one)).join('; '))
  } catch (thrown) {
    throw asFlashError(thrown)
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
  const { shell, sources } = services()
  const { progress = () => {}, cancel = new AbortController().signal } = options
  const writer = createWriter({
    shell,
    decoders: createDecoders({ shell }),
    disks: createDisks({ shell }),
    table: createPartitionTable({ shell }),
  })
  try {
    await using source = await sources.open(plan.location, { signal: cancel })
    for await (const event of writer.execute(plan, source, { signal: cancel })) progress(event)
    progress({ event: 'done' })
  } catch (thrown) {
    progress({ event: 'failed', note: renderError(thrown) })
    throw asFlashError(thrown)
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
  return { shell: createShell({ env }), sources: createSources({ env }) }
}

function asFlashError(thrown: unknown): FlashError {
  return thrown instanceof Fault
    ? new FlashError(thrown.code, thrown.message, thrown.hint, thrown)
    : new FlashError('tool-failed', renderError(thrown), undefined, thrown)
}
