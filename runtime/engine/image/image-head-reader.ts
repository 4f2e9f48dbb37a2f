/** Reads an image's first decoded MiB, and its part of the disk's last; refuses what does not fit the disk. */
import { Fault } from '#kit/foundation/fault.ts'
import { findBeyond } from './rules/dos-sectors.ts'
import { findForeign } from './content/rules/raw-image.ts'
import { checkHead, type FittedImage } from './rules/image-head.ts'
import { createSlot } from '#engine/disk/device.ts'
import { locateEnds } from '#engine/disk/rules/disk-end.ts'
import type { Filler } from './filler.ts'

/**
 * At most the first MiB. Rejects with a Fault `plan-refused`: no disk image, one for other sectors,
 * or one that does not fit.
 */
export async function readHead(filler: Filler, { image, target }: FittedImage): Promise<Buffer> {
  const { headBytes } = locateEnds(target.identity.sizeBytes)
  const whole = createSlot(headBytes)
  const head = whole.subarray(0, await filler.fill(whole))
  const checked = checkHead(image.name, head, target.sectorBytes, image)
  if (!checked.ok) throw new Fault('plan-refused', checked.refusal)
  const beyond = findBeyond(head, { ...target, sizeBytes: target.identity.sizeBytes })
  if (beyond !== null) throw new Fault('plan-refused', `${image.name} does not fit: ${beyond}`)
  const foreign = image.anyContent === true ? null : findForeign(image, head)
  if (foreign !== null) throw foreign
  return head
}

/** Rejects with a Fault `write-failed` when the image goes on behind the disk's end. */
export async function readTail(
  filler: Filler,
  { image, target }: FittedImage,
  bodyEnd: number,
): Promise<Buffer> {
  const { sizeBytes } = target.identity
  const { tailStart } = locateEnds(sizeBytes)
  const whole = createSlot(bodyEnd < tailStart ? 0 : sizeBytes - tailStart)
  const tail = whole.subarray(0, await filler.fill(whole))
  if (tail.length === whole.length && (await filler.fill(createSlot(1))) > 0) {
    throw new Fault(
      'write-failed',
      `${image.name} is larger than ${target.path}: the disk ends at byte ${sizeBytes}`,
      { hint: 'Use a larger disk.' },
    )
  }
  return tail
}
