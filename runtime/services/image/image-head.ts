/** Reads an image's first decoded MiB, and refuses what is no disk image or has the wrong sector size. */
import { Fault } from '../../core/foundation/fault.ts'
import type { FlashPlan } from '../../core/flash/flash.ts'
import { checkHead } from '../../core/image/image-head.ts'
import { createSlot } from '../disk/device.ts'
import { locateEnds } from '../disk/disk-ends.ts'
import type { Filler } from './filler.ts'

/** The bytes; a Fault `plan-refused` where they are no disk image, or one for other sectors. */
export async function readHead(filler: Filler, { image, target }: FlashPlan): Promise<Buffer> {
  const { headBytes } = locateEnds(target.identity.sizeBytes)
  const whole = createSlot(headBytes)
  const head = whole.subarray(0, await filler.fill(whole))
  const checked = checkHead(image.name, head, target.sectorBytes)
  if (!checked.ok) throw new Fault('plan-refused', checked.refusal)
  return head
}
