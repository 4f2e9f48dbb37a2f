/** Where the disks of tests lie: in memory where there is plenty, for a loop device's sync waits for what is below it. */
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** Bytes: many times what the tests that run beside each other write. A container's /dev/shm is often too small. */
const MIN_FREE = 8 * 2 ** 30
const MEMORY = '/dev/shm'

/** A folder for disks and images of at most some hundred MiB. */
export const SCRATCH: string = isPlenty() ? MEMORY : tmpdir()

function isPlenty(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= MIN_FREE
  } catch {
    return false
  }
}
