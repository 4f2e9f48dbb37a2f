/** Opens the disk of a plan exclusively, and checks once more that it is the one of the plan; erases it after a failure. */
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { DiskRecord } from './disk-record.ts'
import { decideRace, type FlashPlan } from './rules/flash.ts'
import { openDevice, type Device } from '#engine/disk/device.ts'
import { clearEnds } from '#engine/disk/disk-ends.ts'
import type { Disks } from '#engine/disk/disks.ts'
import { rereadPartitions } from '#engine/disk/partition-table.ts'
import type { Shell } from '#kit/host/shell.ts'
import { untilAborted } from '#kit/host/watch.ts'

/**
 * The disk is opened by `hold`, and closed by `release`, which also waits for an opening that is still
 * under way. A Fault `target-raced` where it is in use, or another disk than the plan names.
 */
export function createHolding(
  { disks, record }: { readonly disks: Pick<Disks, 'probe'>; readonly record: DiskRecord },
  plan: FlashPlan,
  signal: AbortSignal,
) {
  const { target, image } = plan
  let opening: Promise<Device> | null = null
  let checking: Promise<void> | null = null

  async function inspect() {
    const race = decideRace(plan, await untilAborted(signal, disks.probe(target.path, image.path)))
    if (race !== null) throw new Fault('target-raced', race)
  }

  return {
    /** Nothing may be written before `check` has resolved. */
    async hold(): Promise<Device> {
      opening = openDevice({ ...target, sizeBytes: target.identity.sizeBytes })
      const device = await untilAborted(signal, opening)
      checking = inspect()
      checking.catch(() => undefined)
      return record.watch(device)
    },
    /** Resolves when the disk was found to be the one of the plan. */
    async check() {
      await checking
    },
    /** `work` reads the disk: if that fails on another disk than the plan's, the Fault says so. */
    async orRaced<Value>(work: Promise<Value>): Promise<Value> {
      try {
        return await work
      } catch (thrown) {
        await checking
        throw thrown
      }
    },
    async release() {
      const device = await opening
      await device?.[Symbol.asyncDispose]()
    },
  }
}

interface EraseTools {
  readonly disks: Pick<Disks, 'probe'>
  readonly shell: Shell
  readonly record: DiskRecord
}

/**
 * For `work` after the ends: where it fails, the disk is taken its table and boot code again, if it is
 * still the one of the plan and nobody uses it. Where that fails too, both are said.
 */
export async function orErase(
  tools: EraseTools,
  plan: FlashPlan,
  work: Promise<void>,
): Promise<void> {
  try {
    await work
  } catch (thrown) {
    try {
      await eraseFlashed(tools, plan)
    } catch (late) {
      if (!(thrown instanceof Fault)) throw thrown
      const { code, message, hint } = thrown
      const words = `${message}; then the disk could not be erased: ${renderError(late)}`
      throw new Fault(code, words, { hint, cause: thrown })
    }
    throw thrown
  }
}

async function eraseFlashed({ shell, ...tools }: EraseTools, plan: FlashPlan): Promise<void> {
  // This must happen after a cancel as well, so its signal never aborts.
  const disk = createHolding(tools, plan, new AbortController().signal)
  try {
    const device = await disk.hold()
    await disk.check()
    await clearEnds(device)
  } finally {
    await disk.release()
  }
  await rereadPartitions(shell, plan.target.node)
}
