/** How a run of zeros gets onto a disk: by a command that is known to read back zeros, or written. */
import type { ZeroFacts } from './disk.ts'

/**
 * `zero-out`: the kernel's write-zeroes without fallback (fallocate --punch-hole), which ends in an
 * error where the device cannot do it. `discard`: loop devices alone, whose driver punches a hole
 * into the backing file; of real disks a discard promises nothing. `write`: plain zeros.
 */
export const ZERO_METHODS = ['zero-out', 'discard', 'write'] as const
export type ZeroMethod = (typeof ZERO_METHODS)[number]

export function decideZeroMethod({
  isLoop,
  discardMaxBytes,
  writeZeroesMaxBytes,
}: ZeroFacts): ZeroMethod {
  if (isLoop && discardMaxBytes > 0) return 'discard'
  return writeZeroesMaxBytes > 0 ? 'zero-out' : 'write'
}
