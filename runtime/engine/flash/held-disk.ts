/** Opens the disk of a plan exclusively, and checks once more that it is the one of the plan; erases it after a failure. */
import { Fault } from '../../kit/foundation/fault.ts'
import { decideRace, type FlashPlan } from './rules/flash.ts'
import { openDevice, type Device } from '../disk/device.ts'
import { clearEnds } from '../disk/disk-ends.ts'
import type { Disks } from '../disk/disks.ts'
import { rereadPartitions } from '../disk/partition-table.ts'
import type { Shell } from '../../kit/host/shell.ts'
import { untilAborted } from '../../kit/host/watch.ts'

/**
 * The disk is opened by `hold`, and closed by `release`, which also waits for an opening that is still
 * under way. A Fault `target-raced` where it is in use, or another disk than the plan names.
 */
export function createHolding(disks: Pick<Disks, 'probe'>, plan: FlashPlan, signal: AbortSignal) {
  const { target, image } = plan
  let opening: Promise<Device> | null = null
  let checking: Promise<void> | null = null

  async function look() {
    const race = decideRace(plan, await untilAborted(signal, disks.probe(target.path, image.path)))
    if (race !== null) throw new Fault('target-raced', race)
  }

  return {
    /** Nothing may be written before `check` has resolved. */
    async hold(): Promise<Device> {
      opening = openDevice({ ...target, sizeBytes: target.identity.sizeBytes })
      const device = await untilAborted(signal, opening)
      checking = look()
      checking.catch(() => undefined)
      return device
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

/**
 * Takes a disk that was written its table and boot code again, if it is still the one of the plan and
 * nobody uses it.
 */
export async function eraseFlashed(
  { disks, shell }: { readonly disks: Pick<Disks, 'probe'>; readonly shell: Shell },
  plan: FlashPlan,
): Promise<void> {
  // Also after a cancel.
  const disk = createHolding(disks, plan, new AbortController().signal)
  try {
    const device = await disk.hold()
    await disk.check()
    await clearEnds(device)
  } finally {
    await disk.release()
  }
  await rereadPartitions(shell, plan.target.node)
}
