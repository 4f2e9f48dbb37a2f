/** Says why an image's last partition cannot fill a disk. */
import type { LastRefusal } from './last-partition.ts'

const REASONS: Readonly<Record<LastRefusal, string>> = {
  'no-table': 'it has no partition table for disks with such sectors',
  'damaged-table': 'its partition table is damaged',
  'no-partition': 'its partition table is empty',
  overlapping: 'its partitions overlap',
  logical: 'its last partition is a logical one',
  'begins-early': 'its last partition begins in the first MiB, which is written last',
  'disk-too-small': 'a partition lies where the backup GPT would have to be',
  efi: 'its last partition is an EFI system partition',
  swap: 'its last partition is swap space',
  lvm: 'its last partition is an LVM physical volume',
  raid: 'its last partition is a member of a RAID',
  encrypted: 'its last partition is encrypted',
  'boot-code': 'its last partition holds boot code',
  fat: 'its last partition is FAT',
}

export const renderLastRefusal = (refusal: LastRefusal): string => REASONS[refusal]

/** `what`: what the partition holds instead of a file system that grows. */
export const renderUngrowable = (what: string): string =>
  `its last partition holds ${what} (ext4, XFS, btrfs and NTFS can be grown)`
