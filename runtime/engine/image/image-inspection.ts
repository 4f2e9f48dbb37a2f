/** Looks into an image before a disk is touched: its first MiB, what lies further on in it, and for which sectors it is made. */
import {
  decideSectors,
  listDosRanges,
  type SectorVerdict,
  findBeyond,
  type FittedImage,
  checkHead,
} from './rules/image-head.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { createSlot } from '#engine/disk/device.ts'
import { untilAborted } from '#kit/host/watch.ts'
import type { Decoders } from './formats.ts'
import { createFiller, type Filler } from './filler.ts'
import type { Source } from './sources/source.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { findForeign } from './content/rules/raw-image.ts'
import { locateEnds } from '#engine/disk/rules/disk-end.ts'

export interface ImageInspection {
  readonly head: Buffer
  /** Null: before what was read, or too far away to be decoded for a look. */
  read(offset: number, bytes: number): Promise<Buffer | null>
}

/** Bytes decoded only to be looked at: of a local file, and of a remote one. */
const MAX_LOOKED = { local: 512 * 1024 * 1024, remote: 16 * 1024 * 1024 } as const

/** Null: standard input can be read only once. Rejects with a Fault, as `readHead`. */
export async function inspectImage<Seen>(
  decoders: Decoders,
  { source, plan }: { readonly source: Source; readonly plan: FittedImage },
  signal: AbortSignal,
  see: (image: ImageInspection) => Promise<Seen>,
): Promise<Seen | null> {
  if (source.path === null && source.url === null) return null
  const opening = decoders.open(source, plan.image.format)
  const limit = MAX_LOOKED[source.path === null ? 'remote' : 'local']
  async function inspect() {
    const filler = createFiller(await opening)
    const head = await readHead(filler, plan)
    let at = head.length
    async function skip(to: number) {
      const scratch = createSlot(SCRATCH_BYTES)
      while (at < to) {
        const zeros = filler.takeZeros(to - at)
        const wanted = Math.min(to - at - zeros, SCRATCH_BYTES)
        const filled = await filler.fill(scratch.subarray(0, wanted))
        at += zeros + filled
        if (filled < wanted) return
      }
    }
    return await see({
      head,
      async read(offset, bytes) {
        if (offset < at || offset > limit) return null
        await skip(offset)
        const whole = createSlot(bytes)
        const filled = await filler.fill(whole)
        at += filled
        return whole.subarray(0, filled)
      },
    })
  }
  try {
    return await untilAborted(signal, inspect())
  } finally {
    await (await opening)[Symbol.asyncDispose]()
  }
}

const SCRATCH_BYTES = 1024 * 1024

/** Null: standard input can be read only once. */
export async function inspectSectors(
  decoders: Decoders,
  source: Source,
  plan: FittedImage,
  signal: AbortSignal,
): Promise<SectorVerdict | null> {
  return await inspectImage(decoders, { source, plan }, signal, async (image) => {
    const ranges = listDosRanges(image.head, plan.target.sectorBytes)
    const all = ranges.flatMap(({ here, usual }) => [here, usual])
    const found = await readRanges(image, all)
    return decideSectors(ranges, ({ offset }) => found.get(offset) ?? null)
  })
}

/** Read forward by offset: what lies too close to another place stays unread. */
async function readRanges({ head, read }: ImageInspection, ranges: readonly Range[]) {
  const found = new Map<number, Buffer>()
  for (const { offset, bytes } of ranges.toSorted((one, other) => one.offset - other.offset)) {
    if (bytes === 0 || found.has(offset)) continue
    const isInHead = offset + bytes <= head.length
    const first = isInHead ? head.subarray(offset, offset + bytes) : await read(offset, bytes)
    if (first !== null) found.set(offset, first)
  }
  return found
}

// Reads an image's first decoded MiB, and its part of the disk's last; refuses what does not fit the disk.

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
