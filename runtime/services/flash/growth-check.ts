/** Looks into an image, before a disk is touched, whether its last partition can fill the disk. */
import { GROW_TOOLS, SIGNATURE_BYTES, detectGrowable } from '../../core/flash/growable.ts'
import { renderLastRefusal, renderUngrowable } from '../../core/flash/grow-text.ts'
import { planLastGrowth } from '../../core/flash/last-partition.ts'
import type { FlashPlan } from '../../core/flash/flash.ts'
import { locateEnds } from '../disk/disk-ends.ts'
import { toolMissing, type Shell } from '../host/shell.ts'
import type { Decoders } from '../image/decoders.ts'
import { lookInto, type ImageLook } from '../image/image-look.ts'
import type { Source } from '../image/source.ts'

interface CheckTools {
  readonly shell: Shell
  readonly decoders: Decoders
}

/**
 * Why it cannot be grown, in words; null where nothing is known against it. A file system that lies
 * too far from the image's beginning is looked at once it is written, as is all of standard input.
 */
export async function findGrowthProblem(
  { shell, decoders }: CheckTools,
  source: Source,
  plan: FlashPlan,
  signal: AbortSignal,
): Promise<string | null> {
  if (!plan.grow) return null
  return await lookInto(decoders, { source, plan }, signal, (image) => look(shell, image, plan))
}

async function look(shell: Shell, image: ImageLook, plan: FlashPlan): Promise<string | null> {
  const { identity, sectorBytes } = plan.target
  const ends = locateEnds(identity.sizeBytes)
  const planned = planLastGrowth(image.head, {
    sizeBytes: identity.sizeBytes,
    sectorBytes,
    ...ends,
  })
  if (!planned.ok) return renderLastRefusal(planned.refusal)
  const { grows, partition } = planned.value
  if (!grows) return null
  const first = await image.read(partition.offset, Math.min(SIGNATURE_BYTES, partition.bytes))
  if (first === null) return null
  const found = detectGrowable(first)
  if (!found.ok) return renderUngrowable(found.refusal)
  for (const tool of GROW_TOOLS[found.value]) {
    if (!(await shell.has(tool))) throw toolMissing(tool)
  }
  return null
}
