/** Finds the decoded size of a zstd file: from all its frames, its seek table, or its first frame. */
import {
  atLeast,
  known,
  reading,
  refused,
  type RangeStep,
  UNKNOWN_SIZE,
  type VirtualSize,
} from './image.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  createFrameWalker,
  type FrameWalker,
  MAX_SEEK_TABLE_BYTES,
  parseSeekFooter,
  parseSeekTable,
  SEEK_FOOTER_BYTES,
  type SeekFooter,
} from './zstd-walker.ts'
import { MAX_FRAME_HEADER_BYTES, renderZstdRefusal } from './zstd.ts'

/** Walked however far away it is. */
const SMALL_FILE_BYTES = 256 * 1024

/**
 * `walk`: every block header, which finds a cut or trailing file. `glance`: the seek table, else
 * the first frame's own size, in a few reads; further frames make the image larger than that.
 */
export function measureZstd(fileBytes: number, way: 'walk' | 'glance'): RangeStep {
  return way === 'walk' || fileBytes <= SMALL_FILE_BYTES
    ? walk(fileBytes, 'all')
    : findTable(fileBytes)
}

const NO_FRAMES = { contentBytes: 0, isExact: true, frames: 0 }

interface Walked {
  readonly fileBytes: number
  readonly reach: 'all' | 'first'
  readonly at: number
  readonly contentBytes: number
  readonly isExact: boolean
  readonly frames: number
}

const walk = (fileBytes: number, reach: Walked['reach']): RangeStep =>
  walkFrom({ fileBytes, reach, at: 0, ...NO_FRAMES }, createFrameWalker())

function walkFrom(walked: Walked, walker: FrameWalker): RangeStep {
  const { fileBytes, reach, at, contentBytes, isExact, frames } = walked
  if (at >= fileBytes) return endWalk(walked, walker)
  const length = Math.min(MAX_FRAME_HEADER_BYTES, fileBytes - at)
  // Inside the only frame so far, its own size is all that is known.
  const stopped = sizeOf(contentBytes, isExact && frames === 1)
  return reading([at, length], stopped, (bytes) => {
    const sizes = takeSizes(walker, bytes)
    if (!sizes.ok) return refused(sizes.refusal)
    const next = at + bytes.length
    if (reach === 'first' && sizes.value.length > 0) {
      return known(decideFirst(fileBytes, next, sizes.value))
    }
    const jump = Math.min(walker.ahead(), fileBytes - next)
    walker.skip(jump)
    return walkFrom({ ...walked, at: next + jump, ...addUp(walked, sizes.value) }, walker)
  })
}

function takeSizes(walker: FrameWalker, bytes: Buffer): Result<readonly (number | null)[], string> {
  const spans = walker.push(bytes)
  if (!spans.ok) return refuse(renderZstdRefusal(spans.refusal))
  return accept(
    spans.value.flatMap((span) => (span.kind === 'frame-start' ? [span.contentBytes] : [])),
  )
}

function addUp(
  { contentBytes, isExact, frames }: typeof NO_FRAMES,
  sizes: readonly (number | null)[],
) {
  return {
    contentBytes: sizes.reduce<number>((sum, size) => sum + (size ?? 0), contentBytes),
    isExact: isExact && !sizes.includes(null),
    frames: frames + sizes.length,
  }
}

function endWalk({ contentBytes, isExact }: Walked, walker: FrameWalker): RangeStep {
  const end = walker.end()
  if (!end.ok) return refused(renderZstdRefusal(end.refusal))
  return known(sizeOf(contentBytes, isExact))
}

const sizeOf = (bytes: number, isExact: boolean): VirtualSize =>
  isExact && Number.isSafeInteger(bytes) ? { kind: 'exact', bytes } : atLeast(bytes)

function findTable(fileBytes: number): RangeStep {
  const at = fileBytes - SEEK_FOOTER_BYTES
  return reading([at, SEEK_FOOTER_BYTES], UNKNOWN_SIZE, (bytes) => {
    const footer = parseSeekFooter(bytes, 0)
    const isReadable =
      footer.ok && footer.value.tableBytes <= Math.min(fileBytes, MAX_SEEK_TABLE_BYTES)
    return isReadable ? readTable(fileBytes, footer.value) : walk(fileBytes, 'first')
  })
}

function readTable(fileBytes: number, footer: SeekFooter): RangeStep {
  const at = fileBytes - footer.tableBytes
  return reading([at, footer.tableBytes], UNKNOWN_SIZE, (bytes) => {
    const table = parseSeekTable(bytes, footer)
    // A table that does not cover the file belongs to another one.
    const isWhole = table.ok && table.value.frameBytes === at
    return isWhole ? known(sizeOf(table.value.contentBytes, true)) : walk(fileBytes, 'first')
  })
}

/** More bytes than such a frame takes at its worst are further frames. */
function decideFirst(fileBytes: number, seen: number, sizes: readonly (number | null)[]) {
  const { contentBytes, isExact, frames } = addUp(NO_FRAMES, sizes)
  const most = seen + contentBytes * (1 + 1 / 128) + SMALL_FILE_BYTES
  return sizeOf(contentBytes, isExact && frames === 1 && fileBytes <= most)
}
