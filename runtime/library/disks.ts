/** Library entry points of the disks module: what disks this machine has. */
import type { DiskRow } from '#engine/disk/rules/lsblk.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createShell } from '#kit/host/shell.ts'

export type { DiskRow } from '#engine/disk/rules/lsblk.ts'

/**
 * Lists the disks of this machine, without their partitions, in the order of `lsblk`. Needs no root.
 *
 * @returns One row per disk. `size_bytes` is in bytes, `size` the same for people (`500G`);
 *   `in_use_by` names what uses the disk now, and is empty for a disk that may be written.
 * @throws {Error} `lsblk` is not installed (`code` is `tool-missing`) or failed (`tool-failed`).
 *
 * @example
 * ```ts
 * import { listDisks } from 'flasher-lab/disks'
 *
 * const disks = await listDisks()
 * const free = disks.filter((disk) => disk.in_use_by.length === 0 && disk.size_bytes >= 8e9)
 * console.log(free.map((disk) => disk.path)) // …
 * ```
 */
export function listDisks(): Promise<readonly DiskRow[]> {
  return createDisks({ shell: createShell({ env: process.env }) }).list()
}
