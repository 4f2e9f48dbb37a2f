/** The first and the last MiB of a disk: where they lie, and what is written to them at the very end of a flash. */
import type { Range } from './extents.ts'
import { parseBackupBytes, type MovedBackup } from './tables/gpt.ts'

const END_BYTES = 1024 * 1024
/** Holds what identifies a disk's content, table and boot code; small enough to be written in one go. */
export const FIRST_BYTES = 4096

/** In bytes; on a very small disk they meet. */
export function locateEnds(diskBytes: number): {
  readonly headBytes: number
  readonly tailStart: number
} {
  const headBytes = Math.min(END_BYTES, diskBytes)
  return { headBytes, tailStart: Math.max(headBytes, diskBytes - END_BYTES) }
}

/**
 * The image ends before them; null where none do. The image's size is a least one where it is not
 * known.
 */
export function decideCleared(leastImageBytes: number, diskBytes: number): Range | null {
  const offset = Math.max(leastImageBytes, locateEnds(diskBytes).tailStart)
  return offset < diskBytes ? { offset, bytes: diskBytes - offset } : null
}

export interface EndPiece {
  readonly offset: number
  readonly bytes: Buffer
}

export interface EndContents {
  /** The image's first MiB; with the table of what grew. */
  readonly head: Buffer
  /** The image's part of the disk's last MiB, empty where it does not reach it. */
  readonly tail: Buffer
  /** A GPT's backup that moves to the end of the disk, and the first MiB that says so; null: none does. */
  readonly moved: MovedBackup | null
}

/**
 * Lists the ends in the order in which they are written, when all the rest is on the medium: the
 * last MiB, then the first but for its first 4 KiB, and these alone at the very end. What lies in
 * the last MiB behind the image becomes zeros: an old RAID, ZFS or LVM is found by its signatures
 * there.
 */
export function planEnds(diskBytes: number, contents: EndContents): readonly EndPiece[] {
  const { headBytes, tailStart } = locateEnds(diskBytes)
  const head = contents.moved?.head ?? contents.head
  return [
    { offset: tailStart, bytes: renderLast(contents, tailStart, diskBytes) },
    { offset: FIRST_BYTES, bytes: head.subarray(FIRST_BYTES, headBytes) },
    { offset: 0, bytes: head.subarray(0, FIRST_BYTES) },
  ].filter(({ bytes }) => bytes.length > 0)
}

function renderLast({ tail, moved }: EndContents, from: number, to: number): Buffer {
  const last = Buffer.alloc(to - from)
  tail.copy(last)
  if (moved !== null) moved.backup.copy(last, moved.offset - from)
  return last
}

interface SplitEnd {
  /** May be written while the disk must not boot yet. */
  readonly early: readonly EndPiece[]
  readonly held: readonly EndPiece[]
}

/**
 * Splits the ends where something has to be mounted that reaches into them: from `headFrom` on the
 * first MiB is written early, and the last MiB up to `tailTo`.
 */
export function splitEnds(
  pieces: readonly EndPiece[],
  { headFrom, tailTo }: { readonly headFrom: number; readonly tailTo: number },
): SplitEnd {
  const early: EndPiece[] = []
  const held: EndPiece[] = []
  for (const { offset, bytes } of pieces) {
    const isHead = offset <= FIRST_BYTES
    const at = Math.min(bytes.length, Math.max(0, (isHead ? headFrom : tailTo) - offset))
    const [before, behind] = [
      { offset, bytes: bytes.subarray(0, at) },
      { offset: offset + at, bytes: bytes.subarray(at) },
    ]
    early.push(isHead ? behind : before)
    held.push(isHead ? before : behind)
  }
  return { early: early.filter(isThere), held: held.filter(isThere) }
}

const isThere = ({ bytes }: EndPiece) => bytes.length > 0

/** The disk's end where there is none. */
export function locateBackup(diskBytes: number, { tail, moved }: EndContents): number {
  if (moved !== null) return moved.offset
  const { tailStart } = locateEnds(diskBytes)
  const isWhole = tailStart + tail.length === diskBytes
  return diskBytes - (isWhole ? Math.min(tail.length, parseBackupBytes(tail)) : 0)
}
