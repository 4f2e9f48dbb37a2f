/** NTFS: how much is used, after what its files occupy was compared with its bitmap. */
import { tooFree, unreadable } from './second-reading.ts'

/** What ntfsresize prints is rounded up to those. */
const MEGABYTE = 1e6
const FILES = 'its table of files'

/**
 * Reads what `ntfsresize --info` prints. It compares what all files occupy with the bitmap first, and
 * says nothing of the space in use where they differ. Its exit code is no help: it is 1 for a volume
 * that is full.
 */
export function judgeNtfs(printed: string, usedBytes: number): string | null {
  const [, megabytes] = /^Space in use\s*: (\d{1,12}) MB/m.exec(printed) ?? []
  if (megabytes === undefined) return onlyLostClusters(printed) ? null : unreadable(FILES)
  return usedBytes > (Number(megabytes) - 1) * MEGABYTE ? null : tooFree(FILES)
}

/**
 * Clusters that the bitmap calls used and no file has are harmless. Only the first ten mismatches are
 * named: of more it is not known what they are.
 */
function onlyLostClusters(printed: string): boolean {
  const [, total] = /^Filesystem check failed! Totally (\d{1,9}) cluster/m.exec(printed) ?? []
  const extra = printed.match(/^Cluster accounting failed at \d+ .*: extra cluster/gm) ?? []
  return total !== undefined && extra.length === Number(total)
}
