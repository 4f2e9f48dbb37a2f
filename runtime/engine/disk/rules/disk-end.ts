/** The first and the last MiB of a disk: where they lie, and what is written to them at the very end of a flash. */
import type { Range } from './extents.ts'
import { parseBackupBytes, type MovedBackup } from './tables/gpt.ts'

const END_BYTES = 1024 * 1024
/** Identifies a disk's content; small enough for one write. */
export const FIRST_BYTES = 4096

/** On a very small disk they meet. */
export function locateEnds(diskBytes: number): {
  readonly headBytes: number
  readonly tailStart: number
} {
  const headBytes = Math.min(END_BYTES, diskBytes)
  return { headBytes, tailStart: Math.max(headBytes, diskBytes - END_BYTES) }
}

/** The part of the disk's last MiB behind the image; an unknown size is a least one. */
export function decideCleared(leastImageBytes: number, diskBytes: number): Range | null {
  const offset = Math.max(leastImageBytes, locateEnds(diskBytes).tailStart)
  return offset < diskBytes ? { offset, bytes: diskBytes - offset } : null
}

export interface EndPiece {
  readonly offset: number
  readonly bytes: Buffer
}

export interface EndContents {
  /** The image's first MiB, with the table of what grew. */
  readonly head: Buffer
  readonly tail: Buffer
  /** A GPT's backup that moves to the end of the disk; null: none does. */
  readonly moved: MovedBackup | null
}

/**
 * Written in this order when all else is on the medium: the last MiB, then the first MiB, its first
 * 4 KiB at the very end. Behind the image the last MiB becomes zeros: old RAID, ZFS or LVM
 * signatures are there.
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
  readonly early: readonly EndPiece[]
  readonly held: readonly EndPiece[]
}

/** For a mount that reaches into the ends. */
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

/** The disk's end without a backup. */
export function locateBackup(diskBytes: number, { tail, moved }: EndContents): number {
  if (moved !== null) return moved.offset
  const { tailStart } = locateEnds(diskBytes)
  const isWhole = tailStart + tail.length === diskBytes
  return diskBytes - (isWhole ? Math.min(tail.length, parseBackupBytes(tail)) : 0)
}
