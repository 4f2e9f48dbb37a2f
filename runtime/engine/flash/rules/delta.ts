/** Decides whether it is worthwhile to compare a disk with an image, frame by frame, before writing. */
import type { Frame, FrameMap } from '#engine/image/rules/frame-map.ts'

/** Frames that are read before it is decided; those that match are not read again. */
const MAX_SAMPLES = 16

/** Frames with data all over the image that may stay on the disk as they are. */
export function chooseSamples(map: FrameMap, canStay: (frame: Frame) => boolean): readonly Frame[] {
  const step = Math.max(1, map.count / (MAX_SAMPLES * 2))
  const candidates = Array.from({ length: Math.ceil(map.count / step) }, (_, n) =>
    findNext(map, Math.floor(n * step), canStay),
  ).filter((frame) => frame !== null)
  const unique = [...new Map(candidates.map((frame) => [frame.index, frame])).values()]
  const every = Math.max(1, unique.length / MAX_SAMPLES)
  return unique.filter((_, n) => Math.floor(n / every) !== Math.floor((n - 1) / every))
}

/** Among a few frames from there on: an image may be zeros for a long way. */
function findNext(map: FrameMap, from: number, canStay: (frame: Frame) => boolean): Frame | null {
  for (let index = from; index < Math.min(map.count, from + MAX_SAMPLES); index += 1) {
    const frame = map.at(index)
    if (!frame.isZero && canStay(frame)) return frame
  }
  return null
}

/**
 * A frame that matches costs one read; one that differs costs that read on top of its write and of the
 * read that verifies it. With half of them there, as much is saved as is lost, and half is not fetched.
 */
export const isWorthwhile = (sampled: number, matching: number): boolean => matching * 2 >= sampled
