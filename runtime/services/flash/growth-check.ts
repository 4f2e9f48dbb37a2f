/** Looks into an image, before a disk is touched, whether its last partition can fill the disk. */
import { GROW_TOOLS, SIGNATURE_BYTES, detectGrowable } from '../../core/flash/growable.ts'
import { renderLastRefusal, renderUngrowable } from '../../core/flash/grow-text.ts'
import { planLastGrowth } from '../../core/flash/last-partition.ts'
import type { FlashPlan } from '../../core/flash/flash.ts'
import { createSlot } from '../disk/device.ts'
import { locateEnds } from '../disk/disk-ends.ts'
import { toolMissing, type Shell } from '../host/shell.ts'
import { untilAborted } from '../host/watch.ts'
import type { Decoders } from '../image/decoders.ts'
import { createFiller, type Filler } from '../image/filler.ts'
import { readHead } from '../image/image-head.ts'
import type { Source } from '../image/source.ts'

interface CheckTools {
  readonly shell: Shell
  readonly decoders: Decoders
}

/** How far an image is decoded only to be looked at: of a local file, and of one that is fetched. */
const MAX_LOOKED = { local: 512 * 1024 * 1024, remote: 16 * 1024 * 1024 } as const

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
  if (!plan.grow || (source.path === null && source.url === null)) return null
  const opening = decoders.open(source, plan.image.format)
  try {
    const filler = createFiller(await untilAborted(signal, opening))
    const limit = MAX_LOOKED[source.path === null ? 'remote' : 'local']
    return await untilAborted(signal, look(shell, filler, plan, limit))
  } finally {
    await (await opening)[Symbol.asyncDispose]()
  }
}

async function look(shell: Shell, filler: Filler, plan: FlashPlan, limit: number) {
  const head = await readHead(filler, plan)
  const { identity, sectorBytes } = plan.target
  const ends = locateEnds(identity.sizeBytes)
  const planned = planLastGrowth(head, { sizeBytes: identity.sizeBytes, sectorBytes, ...ends })
  if (!planned.ok) return renderLastRefusal(planned.refusal)
  const { grows, partition } = planned.value
  if (!grows || partition.offset > limit) return null
  await skip(filler, partition.offset - head.length)
  const whole = createSlot(Math.min(SIGNATURE_BYTES, partition.bytes))
  const found = detectGrowable(whole.subarray(0, await filler.fill(whole)))
  if (!found.ok) return renderUngrowable(found.refusal)
  for (const tool of GROW_TOOLS[found.value]) {
    if (!(await shell.has(tool))) throw toolMissing(tool)
  }
  return null
}

const SCRATCH_BYTES = 1024 * 1024

async function skip(filler: Filler, bytes: number) {
  const scratch = createSlot(SCRATCH_BYTES)
  for (let rest = bytes; rest > 0;) {
    const zeros = filler.takeZeros(rest)
    const wanted = Math.min(rest - zeros, SCRATCH_BYTES)
    const filled = await filler.fill(scratch.subarray(0, wanted))
    rest -= zeros + filled
    if (filled < wanted) return
  }
}
