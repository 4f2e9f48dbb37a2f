/** Notifies the kernel that a disk's partition table has changed. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Shell } from '#kit/host/shell.ts'
import { settleDevices } from './udev.ts'

/** udev may hold a disk for a moment that was closed after writing. */
const TRIES = 5
const PAUSE_MS = 200

/** Best effort: a disk that cannot be re-read shows its partitions after the next start. */
export async function rereadPartitions(shell: Shell, node: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { exitCode, stderr } = await shell.run(['blockdev', '--rereadpt', node])
    // The kernel never reads some disks (loop devices): no use in waiting.
    if (exitCode === 0 || !stderr.includes('busy')) break
    await pause(PAUSE_MS)
  }
  // For kernels that do not read tables by themselves.
  await shell.run(['partx', '--update', node])
  await settleDevices(shell)
}
