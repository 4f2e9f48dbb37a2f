/** Looks into an image before a disk is touched: its first MiB, what lies further on in it, and for which sectors it is made. */
import { decideSectors, listDosRanges, type SectorVerdict } from './rules/dos-sectors.ts'
import type { FittedImage } from './rules/image-head.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { createSlot } from '#engine/disk/device.ts'
import { untilAborted } from '#kit/host/watch.ts'
import type { Decoders } from './formats.ts'
import { createFiller } from './filler.ts'
import { readHead } from './image-head-reader.ts'
import type { Source } from './sources/source.ts'

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
