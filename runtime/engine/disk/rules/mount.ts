/** Decides which file systems of a flashed disk are mounted, and with which options. */
import { PHYSICAL_VOLUME, type Contents } from './volume.ts'

/** Those that Linux installs its root on and that can be written. */
const ROOT_FILE_SYSTEMS = ['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'f2fs'] as const
export type RootFileSystem = (typeof ROOT_FILE_SYSTEMS)[number]

export const findRootFileSystem = (type: string | null): RootFileSystem | null =>
  ROOT_FILE_SYSTEMS.find((known) => known === type) ?? null

const WHY_NOT: Readonly<Record<string, string>> = {
  [PHYSICAL_VOLUME]: 'its logical volumes count by themselves',
  crypto_LUKS: 'encrypted, so it cannot be looked into',
  linux_raid_member: 'a member of a RAID, which is not assembled here',
  swap: 'swap space',
  squashfs: 'read-only by its nature',
  erofs: 'read-only by its nature',
}

/** Why a volume with these contents is no root file system for us. */
export function renderWhyNot({ type, table }: Pick<Contents, 'type' | 'table'>): string {
  if (type !== null) return WHY_NOT[type] ?? 'not a file system that Linux is installed on'
  return table === null
    ? 'nothing in it that is known'
    : `it holds a partition table (${table}) and the kernel shows no partition of it`
}

/**
 * `look` reads, `write` writes files of ours, `work` hands the mount to a workflow, `check` finds out
 * whether it can be mounted, and leaves even its journal alone.
 */
export type MountPurpose = 'look' | 'write' | 'work' | 'check'

/**
 * Whatever the image holds stays data: nothing is executed, no device node leads anywhere, and the
 * kernel itself follows no link. A workflow may chroot into the mount and run what is there, so it
 * gets all but device nodes: one in place of an ordinary file would lead to a disk of this machine.
 */
const LOOKING = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow']
const OPTIONS: Readonly<Record<MountPurpose, readonly string[]>> = {
  look: LOOKING,
  check: LOOKING,
  write: ['rw', 'nosuid', 'nodev', 'noexec', 'nosymfollow'],
  work: ['rw', 'nodev'],
}

/** An ext superblock may ask for a kernel panic on the first error it meets: not on this machine. */
const EXT = ['errors=remount-ro']

/**
 * Journals are replayed, also for a look: what a dirty one holds is part of the file system (a
 * look with `noload` would miss files). XFS considers a file system mounted when its UUID is, as it
 * is where this machine runs the very image that was flashed.
 */
const OWN: Readonly<Record<RootFileSystem, readonly string[]>> = {
  ext2: EXT,
  ext3: EXT,
  ext4: EXT,
  xfs: ['nouuid'],
  btrfs: [],
  f2fs: [],
}

/** Those with a journal that a mount can leave alone. */
const WITH_JOURNAL: ReadonlySet<RootFileSystem> = new Set(['ext3', 'ext4'])

/** What mount(8) gets after `-o`. `subvolume`: of btrfs, `subvol=…` or `subvolid=…`. */
export function decideMountOptions(
  type: RootFileSystem,
  purpose: MountPurpose,
  subvolume: string | null,
): readonly string[] {
  const journal = purpose === 'check' && WITH_JOURNAL.has(type) ? ['noload'] : []
  const options = [...OPTIONS[purpose], ...OWN[type], ...journal]
  return subvolume === null ? options : [...options, subvolume]
}

/** The top of a btrfs file system, below which every subvolume is a folder. */
export const BTRFS_TOP = 'subvolid=5'

/** The option for a subvolume's path; null where the path would be read as more than one option. */
export const subvolumeOption = (path: string): string | null =>
  /^[^,\\"'\p{Cc}]+$/u.test(path) ? `subvol=${path}` : null
