/** Decides where a disk is marked before a write, so that one that is smaller than it says is found out. */
import { locateEnds } from '#engine/disk/rules/disk-end.ts'

export const MARK_BYTES = 4096
const MIB = 2 ** 20
/** The distance of marks that lie far behind the image, as a part of their offset. */
const FAR = 64

interface MarkedDisk {
  readonly sizeBytes: number
  /** Where the image ends, as far as that is known before. */
  readonly imageEnd: number
  /** Where a partition will end that grows; null: none does. */
  readonly grownEnd: number | null
}

/**
 * Lists offsets at the disk's end and, where a partition grows, behind the image. A counterfeit card
 * stores what lies behind its real size in its front, or nowhere. Marks as far from each other as the
 * image is long cannot all miss it there: it is written over them, or they are over it.
 */
export function planMarks({ sizeBytes, imageEnd, grownEnd }: MarkedDisk): readonly number[] {
  const { headBytes, tailStart } = locateEnds(sizeBytes)
  const first = Math.ceil(Math.max(imageEnd, headBytes) / MIB) * MIB
  const limit = Math.min(grownEnd ?? 0, tailStart) - MARK_BYTES
  const places: number[] = []
  for (let at = first; at <= limit; at += Math.max(first, Math.ceil(at / FAR / MIB) * MIB)) {
    places.push(at)
  }
  const last = sizeBytes - MARK_BYTES
  return last < tailStart ? places : [...places, last]
}

/** A mark carries its own offset, and the number of its flash. */
export const renderMark = (at: number, flash: string): Buffer =>
  Buffer.alloc(MARK_BYTES, `flasher ${flash} ${at} `.padEnd(64, '.'))
