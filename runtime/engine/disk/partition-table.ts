/** Notifies the kernel that a disk's partition table has changed. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Shell } from '../../kit/host/shell.ts'
import { settleDevices } from './udev.ts'

/** udev looks at a disk that was closed after writing and may hold it for a moment. */
const TRIES = 5
const PAUSE_MS = 200

/**
 * Has the kernel read a disk's table again, and waits for udev. Best effort: a disk that cannot be
 * re-read shows its partitions after the next start.
 */
export async function rereadPartitions(shell: Shell, node: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { exitCode, stderr } = await shell.run(['blockdev', '--rereadpt', node])
    // Some disks (loop devices) are never read by the kernel: no use in waiting.
    if (exitCode === 0 || !stderr.includes('busy')) break
    await pause(PAUSE_MS)
  }
  // Needed where the kernel does not read tables by itself, harmless elsewhere.
  await shell.run(['partx', '--update', node])
  await settleDevices(shell)
}
