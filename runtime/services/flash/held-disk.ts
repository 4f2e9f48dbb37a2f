/** Holds the disk of a plan for us alone, and looks once more whether it is the one of the plan. */
import { Fault } from '../../core/foundation/fault.ts'
import { decideRace, type FlashPlan } from '../../core/flash/flash.ts'
import { openDevice, type Device } from '../disk/device.ts'
import type { Disks } from '../disk/disks.ts'
import { untilAborted } from '../host/watch.ts'

export function createHolding(disks: Pick<Disks, 'probe'>, plan: FlashPlan, signal: AbortSignal) {
  const { target, image } = plan
  let opening: Promise<Device> | null = null
  let checking: Promise<void> | null = null

  async function look() {
    const race = decideRace(plan, await untilAborted(signal, disks.probe(target.path, image.path)))
    if (race !== null) throw new Fault('target-raced', race)
  }

  return {
    /** Nobody writes to it before `check` has resolved. */
    async hold(): Promise<Device> {
      opening = openDevice({ ...target, sizeBytes: target.identity.sizeBytes })
      const device = await untilAborted(signal, opening)
      checking = look()
      checking.catch(() => undefined)
      return device
    },
    /** A Fault where the disk that is held is not, or no longer, the one of the plan. */
    async check() {
      await checking
    },
    /** What goes wrong while another disk than the planned one is read is said of that. */
    async orRaced<Value>(work: Promise<Value>): Promise<Value> {
      try {
        return await work
      } catch (thrown) {
        await checking
        throw thrown
      }
    },
    /** Also closes what is still being opened. */
    async release() {
      const device = await opening
      await device?.[Symbol.asyncDispose]()
    },
  }
}
