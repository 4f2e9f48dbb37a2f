/** Decides which file systems of a flashed disk are mounted, and with which options. */
import { PHYSICAL_VOLUME, type Contents } from './volume.ts'

/** Linux installs its root on them, and they can be written. */
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

export function renderWhyNot({ type, table }: Pick<Contents, 'type' | 'table'>): string {
  if (type !== null) return WHY_NOT[type] ?? 'not a file system that Linux is installed on'
  return table === null
    ? 'nothing in it that is known'
    : `it holds a partition table (${table}) and the kernel shows no partition of it`
}

/** `work`: for a workflow; `check`: leaves even the journal alone. */
export type MountPurpose = 'look' | 'write' | 'work' | 'check'

/**
 * Nothing of the image is executed, and no link followed. A workflow may chroot into it, so that it
 * lacks only device nodes, which could lead to a disk of this machine.
 */
const LOOKING = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow']
const OPTIONS: Readonly<Record<MountPurpose, readonly string[]>> = {
  look: LOOKING,
  check: LOOKING,
  write: ['rw', 'nosuid', 'nodev', 'noexec', 'nosymfollow'],
  work: ['rw', 'nodev'],
}

/** The superblock may ask for a kernel panic on the first error. */
const EXT = ['errors=remount-ro']

/**
 * Journals are replayed also for a look, or files would be missing. XFS refuses a UUID that is
 * mounted, as where this machine runs the very image.
 */
const OWN: Readonly<Record<RootFileSystem, readonly string[]>> = {
  ext2: EXT,
  ext3: EXT,
  ext4: EXT,
  xfs: ['nouuid'],
  btrfs: [],
  f2fs: [],
}

/** A mount can leave these journals alone. */
const WITH_JOURNAL: ReadonlySet<RootFileSystem> = new Set(['ext3', 'ext4'])

/** For `-o` of mount(8). `subvolume`: of btrfs, `subvol=…` or `subvolid=…`. */
export function decideMountOptions(
  type: RootFileSystem,
  purpose: MountPurpose,
  subvolume: string | null,
): readonly string[] {
  const journal = purpose === 'check' && WITH_JOURNAL.has(type) ? ['noload'] : []
  const options = [...OPTIONS[purpose], ...OWN[type], ...journal]
  return subvolume === null ? options : [...options, subvolume]
}

export const BTRFS_TOP = 'subvolid=5'

/** Null: the path would be read as more than one option. */
export const subvolumeOption = (path: string): string | null =>
  /^[^,\\"'\p{Cc}]+$/u.test(path) ? `subvol=${path}` : null
