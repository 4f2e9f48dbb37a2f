/** Tells the kernel that a disk's partition table is another now. */
import type { Shell } from '../host/shell.ts'

export interface PartitionTable {
  /** Best effort: a disk that nobody could re-read shows its partitions after the next start. */
  reread(node: string): Promise<void>
}

/** udev looks at a disk that was closed after writing and may hold it for a moment. */
const TRIES = 5
const PAUSE_MS = 200

export function createPartitionTable({ shell }: { readonly shell: Shell }): PartitionTable {
  return {
    async reread(node) {
      for (let tries = 0; tries < TRIES; tries += 1) {
        const { exitCode, stderr } = await shell.run(['blockdev', '--rereadpt', node])
        // Some disks (loop devices) are never read by the kernel: no use in waiting.
        if (exitCode === 0 || !stderr.includes('busy')) break
        await new Promise((resolve) => {
          setTimeout(resolve, PAUSE_MS)
        })
      }
      // Right on any kernel, also on one that reads no tables by itself.
      await shell.run(['partx', '--update', node])
      if (await shell.has('udevadm')) await shell.run(['udevadm', 'settle', '--timeout=10'])
    },
  }
}
