/** Library entry points of the disks module: what disks this machine has. */
import type { DiskRow } from '../engine/disk/rules/lsblk.ts'
import { createDisks } from '../engine/disk/disks.ts'
import { createShell } from '../kit/host/shell.ts'

export type { DiskRow } from '../engine/disk/rules/lsblk.ts'

/**
 * The disks of this machine, in the order of `lsblk` ("Disk record"). Rejects with an Error whose
 * `code` is `tool-missing` where `lsblk` is not installed.
 */
export function listDisks(): Promise<readonly DiskRow[]> {
  return createDisks({ shell: createShell({ env: process.env }) }).list()
}
