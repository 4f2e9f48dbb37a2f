/** Decides which of several disks the others leave behind. Pure. */

/** One of several disks that are fed from a bounded buffer. */
export interface FedDisk {
  /** Pieces in the buffer that it has yet to write. */
  readonly backlog: number
  /** What it writes of late, in bytes per second; null: not yet known. */
  readonly rate: number | null
}

/** A disk at less than half of the speed of a waiting one is worth a second reading of the source. */
const SLOWER = 2

/**
 * By their indexes, when the buffer is full: those that hold at least half as much of it as the one
 * that holds most, and that are far slower than a disk that waits for them. A disk that is only a
 * little slower than the others would gain them little, and read the source once more for that.
 */
export function decideLeftBehind(disks: readonly FedDisk[]): readonly number[] {
  const waiting = disks.filter(({ backlog }) => backlog === 0)
  if (waiting.length === 0) return []
  // One that waits has written all that there was, however little that is.
  const fastest = Math.max(...waiting.map(({ rate }) => rate ?? Infinity))
  const most = Math.max(...disks.map(({ backlog }) => backlog))
  return disks.flatMap(({ backlog, rate }, index) =>
    backlog > 0 && backlog * 2 >= most && (rate ?? 0) * SLOWER < fastest ? [index] : [],
  )
}
