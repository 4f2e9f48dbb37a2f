/** NTFS: how much is used, after what its files occupy was compared with its bitmap. */
import { tooFree, unreadable } from './second-reading.ts'

/** ntfsresize rounds up to those. */
const MEGABYTE = 1e6
const FILES = 'its table of files'

/**
 * `ntfsresize --info` omits the space in use where files and bitmap differ. Its exit code does not
 * help: it is 1 for a full volume.
 */
export function judgeNtfs(printed: string, usedBytes: number): string | null {
  const [, megabytes] = /^Space in use\s*: (\d{1,12}) MB/m.exec(printed) ?? []
  if (megabytes === undefined) return onlyLostClusters(printed) ? null : unreadable(FILES)
  return usedBytes > (Number(megabytes) - 1) * MEGABYTE ? null : tooFree(FILES)
}

/**
 * Used clusters without a file are harmless. Only the first ten mismatches are named; of more, the
 * kind is unknown.
 */
function onlyLostClusters(printed: string): boolean {
  const [, total] = /^Filesystem check failed! Totally (\d{1,9}) cluster/m.exec(printed) ?? []
  const extra = printed.match(/^Cluster accounting failed at \d+ .*: extra cluster/gm) ?? []
  return total !== undefined && extra.length === Number(total)
}
