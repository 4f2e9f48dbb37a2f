/** Looks into an image, before a disk is touched, whether a first-boot configuration has a place in it. */
import { CIDATA_PREFERRED, isCidata, LABEL_BYTES } from '../../core/first-boot/cidata.ts'
import { planSeed } from '../../core/first-boot/place.ts'
import type { FirstBoot } from '../../core/first-boot/seed.ts'
import type { FlashPlan } from '../../core/flash/flash.ts'
import { locateEnds } from '../disk/disk-ends.ts'
import type { Decoders } from '../image/decoders.ts'
import { lookInto, type ImageLook } from '../image/image-look.ts'
import type { Source } from '../image/source.ts'

interface SeedOrder {
  readonly plan: FlashPlan
  readonly firstBoot: FirstBoot
}

/**
 * Why it cannot be written, in words; null where nothing is known against it. A partition that lies
 * too far from the image's beginning is looked at once it is written, as is all of standard input.
 */
export const findSeedProblem = (
  { decoders }: { readonly decoders: Decoders },
  source: Source,
  { plan, firstBoot }: SeedOrder,
  signal: AbortSignal,
): Promise<string | null> =>
  lookInto(decoders, { source, plan }, signal, (image) => look(image, plan, firstBoot))

async function look(
  { head, read }: ImageLook,
  { target }: FlashPlan,
  firstBoot: FirstBoot,
): Promise<string | null> {
  const { identity, sectorBytes } = target
  const planned = planSeed(head, { ...locateEnds(identity.sizeBytes), sectorBytes }, firstBoot)
  if (!planned.ok) return planned.refusal
  const { place, partitions } = planned.value
  if (place.kind !== 'cloud-init') return null
  for (const { offset, bytes } of partitions.toSorted((one, other) => one.offset - other.offset)) {
    const first = await read(offset, Math.min(LABEL_BYTES, bytes))
    if (first !== null && isCidata(first)) return CIDATA_PREFERRED
  }
  return null
}
