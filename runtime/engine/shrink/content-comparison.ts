/** Compares the content of two files that lie in other places, piece by piece. */
import type { Range } from '#engine/disk/rules/extents.ts'

/** Bytes of a file system; always a whole buffer. A RangeError outside of it. */
export type ReadBytes = (range: Range) => Promise<Buffer>

export const MAX_READ_BYTES: number = 1024 * 1024

/** Of a file, in blocks or clusters; `at` null: it reads as zeros. */
export interface Piece {
  readonly from: number
  readonly at: number | null
  readonly count: number
}

interface Content {
  readonly pieces: readonly Piece[]
  readonly read: ReadBytes
}

const unchanged = (bytes: Buffer) => bytes

/** Where one has a hole, the other has to have it, too. `view`: what counts of the bytes. */
export async function isSameContent(
  one: Content,
  two: Content,
  unitBytes: number,
  view: (bytes: Buffer) => Buffer = unchanged,
): Promise<boolean> {
  const most = Math.max(1, Math.floor(MAX_READ_BYTES / unitBytes))
  async function isSamePiece(before: Piece, after: Piece, count: number): Promise<boolean> {
    if (before.at === null || after.at === null) return before.at === after.at
    const bytes = count * unitBytes
    const was = await one.read({ offset: before.at * unitBytes, bytes })
    const is = await two.read({ offset: after.at * unitBytes, bytes })
    return was.equals(is) || view(was).equals(view(is))
  }
  const [left, right] = [createCursor(one.pieces), createCursor(two.pieces)]
  for (;;) {
    const [here, there] = [left.now(), right.now()]
    if (here === null || there === null) return here === there
    const count = Math.min(here.count, there.count, here.at === null ? Infinity : most)
    if (here.from !== there.from || !(await isSamePiece(here, there, count))) return false
    left.take(count)
    right.take(count)
  }
}

function createCursor(pieces: readonly Piece[]) {
  let index = 0
  let taken = 0
  return {
    now(): Piece | null {
      const piece = pieces[index]
      if (piece === undefined) return null
      const { from, at, count } = piece
      return { from: from + taken, at: at === null ? null : at + taken, count: count - taken }
    },
    take(count: number) {
      taken += count
      if (taken < (pieces[index]?.count ?? 0)) return
      index += 1
      taken = 0
    },
  }
}
