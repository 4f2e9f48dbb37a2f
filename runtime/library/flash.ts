/** Library entry points of the flash module: make a plan, carry it out. */
import { Fault } from '#kit/foundation/fault.ts'
import {
  type FlashEvent,
  type FlashOptions,
  type FlashPlan as Plan,
  renderReasons,
  WHOLE_DISK,
} from '#engine/flash/rules/flash-plan.ts'
import { describeFailure, type FlashFailure } from '#engine/flash/rules/run-report.ts'
import { accept } from '#kit/foundation/result.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { LibraryError } from './library-error.ts'

/**
 * One event of a flash, as `flasher flash --progress ndjson` prints it: `started`, `writing` about four
 * times a second (`phase` is `write`, then `verify`), `synced`, `partprobed`, and at the end `done` or
 * `failed`. Sizes are in bytes; in phase `verify`, `bytes_written` counts the bytes that were read back.
 */
export type FlashProgress = FlashEvent

/**
 * Receives every event of a flash, in order. The flash does not wait for promises that it returns.
 *
 * @param progress - The event; its sizes are in bytes.
 *
 * @example
 * ```ts
 * import type { ProgressCallback } from 'flasher-lab/flash'
 *
 * const report: ProgressCallback = (progress) => {
 *   console.log(progress.event) // synced
 * }
 * report({ event: 'synced' })
 * ```
 */
export type ProgressCallback = (progress: FlashProgress) => void

/** A flash that may go ahead, as a plain value that can be shown or logged. */
export interface FlashPlan extends Plan {
  /** The image's path, URL or reference, as it was given. */
  readonly location: string
}

/** What to flash onto which disk; every other field has a default, the one of `flasher flash`. */
export interface FlashRequest extends Partial<FlashOptions> {
  /** A path, an `http(s)://` URL or an `oras://` reference. */
  readonly image: string
  /** The path of a block device, for example `/dev/sdb`. */
  readonly target: string
  /** The image's format, whatever its name says; null or absent: the name decides. */
  readonly format?: ImageFormat | null
}

/**
 * Why a flash was refused or failed. `code` is from a closed list, so that programs can act on it:
 * `plan-refused` (nothing was written), `digest-mismatch`, `image-broken`, `source-broken`,
 * `write-failed`, `verify-failed`, `target-raced`, `root-required`, `tool-missing`, `cancelled`…
 * `hint` says how to fix it, where that is known.
 *
 * @example
 * ```ts
 * import { FlashError, makePlan } from 'flasher-lab/flash'
 *
 * try {
 *   await makePlan({ image: 'debian.img.zst', target: '/etc/hostname' })
 * } catch (error) {
 *   if (error instanceof FlashError) console.log(error.code) // plan-refused
 * }
 * ```
 */
export class FlashError extends LibraryError {
  override readonly name = 'FlashError'
}

/**
 * Checks whether an image can be flashed onto a disk, and plans it; writes nothing. The image's digest
 * is the one of the request, else the one in a `.sha256` file beside a local image, else the one that
 * the source promises.
 *
 * @param request - Image, disk and options.
 * @param options - Aborting `cancel` ends the check: reading over the network may take long.
 * @returns The plan, for `executePlan`.
 * @throws {FlashError} `plan-refused`, with every reason, if the image cannot be flashed onto this disk;
 *   `input-missing` if there is no such image; `root-required` if the disk may not be opened…
 *
 * @example
 * ```ts
 * import { makePlan } from 'flasher-lab/flash'
 *
 * const plan = await makePlan({ image: 'debian.img.zst', target: '/dev/sdb', verify: 'all' })
 * console.log(plan.location, plan.image.format, plan.verify) // debian.img.zst img.zst all
 * ```
 */
export async function makePlan(
  request: FlashRequest,
  { cancel = new AbortController().signal }: { readonly cancel?: AbortSignal } = {},
): Promise<FlashPlan> {
  const { image, target, format = null, ...given } = request
  const options = { ...WHOLE_DISK, ...given }
  try {
    const flasher = createFlasher({ env: process.env })
    const order = { image, targets: [{ path: target }], format, options }
    await using planned = await flasher.plan(order, cancel)
    const [disk] = planned.disks
    if (disk?.plan.ok === true) return { ...disk.plan.value, location: image }
    const reasons = disk === undefined ? [] : renderReasons(disk)
    throw new Fault('plan-refused', reasons.join('; '))
  } catch (thrown) {
    throw toError(describeFailure(thrown, { target, stage: 'checking', isAborted: cancel.aborted }))
  }
}

/**
 * Erases the disk of a plan and writes the image onto it; requires root. The disk is checked again right
 * before the first byte. Resolves when the disk holds the image, read back as the plan says.
 *
 * @param plan - What `makePlan` returned.
 * @param options - `progress` receives every event. Aborting `cancel` ends the flash within about a
 *   second.
 * @throws {FlashError} The flash failed or was cancelled. Once writing has begun, the disk is left
 *   without a partition table, so that it never boots half a system.
 *
 * @example
 * ```ts
 * import { executePlan, makePlan } from 'flasher-lab/flash'
 *
 * const plan = await makePlan({ image: 'debian.img.zst', target: '/dev/sdb' })
 * await executePlan(plan, {
 *   cancel: AbortSignal.timeout(3_600_000),
 *   progress(step) {
 *     if (step.event === 'writing') console.error(step.phase, step.bytes_written, step.total_bytes)
 *     if (step.event === 'done') console.log(step.event) // done
 *   },
 * })
 * ```
 */
export async function executePlan(
  plan: FlashPlan,
  options: { readonly progress?: ProgressCallback; readonly cancel?: AbortSignal } = {},
): Promise<void> {
  const { progress = () => {}, cancel: signal = new AbortController().signal } = options
  const { location: image, ...planned } = plan
  const ready = { order: { image }, disks: [{ target: plan.target, plan: accept(planned) }] }
  const flasher = createFlasher({ env: process.env })
  const [outcome] = await flasher.run(ready, { signal, onEvent: (event) => progress(event) })
  if (outcome === undefined || outcome.kind === 'done') return progress({ event: 'done' })
  progress({ event: 'failed', note: outcome.reason })
  throw toError(outcome)
}

const toError = ({ code, reason, hint, cause }: FlashFailure) =>
  new FlashError(code === 'unexpected' ? 'tool-failed' : code, reason, {
    hint: hint ?? undefined,
    cause,
  })
