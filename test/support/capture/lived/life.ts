/** What a file system goes through, planned from a seed: how it is made, and what happens to it. */
import { createRandom } from '#test/support/collect.ts'

export const LIVED_KINDS = ['btrfs', 'ext4', 'xfs', 'vfat', 'exfat', 'ntfs'] as const
export type LivedKind = (typeof LIVED_KINDS)[number]

/** One thing that happens; `number`: any, from which the details follow. */
export interface Event {
  readonly does: Deed
  readonly number: number
}

const ANY = [
  'write',
  'write-many',
  'write-large',
  'delete',
  'overwrite',
  'append',
  'rename',
] as const
const MOUNTED = [...ANY, 'truncate', 'fill', 'link', 'remount'] as const
const LINUX = [...MOUNTED, 'punch', 'reserve', 'holes'] as const
const SNAPSHOTS = ['subvolume', 'snapshot', 'delete-snapshot', 'balance', 'defragment'] as const
export type Deed =
  | (typeof LINUX)[number]
  | (typeof SNAPSHOTS)[number]
  | 'reflink'
  | 'quota'
  | 'shrink'
  | 'grow'

/** Twice what is to happen twice as often. */
const DEEDS: Readonly<Record<LivedKind, readonly Deed[]>> = {
  btrfs: [...LINUX, ...SNAPSHOTS, 'snapshot', 'balance', 'reflink', 'quota'],
  ext4: [...LINUX, 'shrink', 'grow'],
  xfs: [...LINUX, 'reflink'],
  vfat: [...ANY, 'write-many'],
  exfat: MOUNTED.filter((deed) => deed !== 'link'),
  ntfs: MOUNTED,
}

type Options = readonly (readonly string[])[]
const words = (...lines: readonly string[]): Options =>
  lines.map((line) => line.split(' ').filter(Boolean))

/** Options of mkfs, as far as they change where things lie. */
export const MKFS_OPTIONS: Readonly<Record<LivedKind, Options>> = {
  btrfs: words(
    '',
    '-m single',
    '-d dup -m dup',
    '-n 4096',
    '-n 65536',
    '-n 32768',
    '-O ^no-holes',
    '-R ^free-space-tree',
    '-O ^skinny-metadata',
    '-O ^extref',
    '--csum xxhash',
    '--csum sha256',
    '--csum blake2',
    '-R quota',
  ),
  ext4: words(
    '',
    '-b 1024',
    '-b 2048',
    '-O ^resize_inode,meta_bg',
    '-b 1024 -O ^resize_inode,meta_bg',
    '-O ^64bit',
    '-O ^flex_bg',
    '-O ^has_journal',
    '-O sparse_super2',
    '-O ^sparse_super,^resize_inode',
    '-O ^metadata_csum,uninit_bg',
    '-O inline_data,ea_inode',
    '-O large_dir,^dir_nlink',
    '-g 8192',
    '-b 1024 -g 256',
    '-O ^extents,^64bit',
    '-O none',
    '-O none,has_journal,filetype,sparse_super',
    '-O orphan_file',
    '-O mmp',
    '-G 4',
    '-E packed_meta_blocks=1',
    '-I 1024 -N 5000',
    '-E lazy_itable_init=0,lazy_journal_init=0',
  ),
  xfs: words(
    '',
    '-b size=1024',
    '-b size=2048',
    '-m rmapbt=1',
    '-m rmapbt=0,reflink=0',
    '-m finobt=0,inobtcount=0',
    '-s size=4096',
    '-d agcount=2',
    '-d su=16k,sw=2,agcount=2',
    '-i size=2048',
    '-i sparse=0',
    '-n size=65536',
    '-i maxpct=50',
    '-i nrext64=1',
  ),
  // The volumes have as many clusters as mtools expects of FAT32 and FAT16.
  vfat: words(
    '-F 32 -s 1',
    '-F 32 -s 1 -f 1',
    '-F 32 -s 1 -R 64',
    '-F 16 -s 4',
    '-F 16 -s 8 -f 1',
    '-F 16 -s 4 -r 2048',
    '-F 16 -s 16',
    '-F 12 -s 64',
  ),
  exfat: words('', '-c 4096', '-c 32768', '-c 131072', '-b 4194304'),
  ntfs: words('', '-c 512', '-c 2048', '-c 65536', '-z 2', '-I'),
}

const MEGABYTES: Readonly<Record<LivedKind, readonly number[]>> = {
  btrfs: [256, 300, 500],
  ext4: [48, 96, 180],
  xfs: [304],
  vfat: [48, 72, 96],
  exfat: [48, 96],
  ntfs: [48, 96],
}

export interface Life {
  readonly seed: number
  readonly kind: LivedKind
  readonly mkfs: readonly string[]
  readonly megabytes: number
  /** Files that it has before anything else happens. */
  readonly files: number
  readonly events: readonly Event[]
}

interface LifeLimits {
  /** Absent: any. */
  readonly kind?: LivedKind
  /** The most things that happen; absent: 30. */
  readonly maxEvents?: number
}

/** How often each kind comes up. */
const SHARES: readonly LivedKind[] = [
  ...Array.from({ length: 8 }, () => 'btrfs' as const),
  ...Array.from({ length: 5 }, () => 'ext4' as const),
  'xfs',
  'xfs',
  'vfat',
  'vfat',
  'exfat',
  'ntfs',
  'ntfs',
]

/** What resize2fs of e2fsprogs 1.47.0 makes of an orphan file cannot be mounted. */
const isResize = (deed: Deed) => deed === 'shrink' || deed === 'grow'

/** The same for the same seed. */
export function planLife(seed: number, { kind: given, maxEvents = 30 }: LifeLimits = {}): Life {
  const random = createRandom(seed)
  const upTo = (end: number) => Math.floor(random() * end)
  const pick = <Value>(values: readonly Value[]): Value => {
    const value = values[upTo(values.length)]
    if (value === undefined) throw new Error('there is nothing to pick from')
    return value
  }
  const kind = given ?? pick(SHARES)
  const mkfs = pick(MKFS_OPTIONS[kind])
  const deeds = DEEDS[kind].filter((deed) => !(isResize(deed) && mkfs.includes('orphan_file')))
  return {
    seed,
    kind,
    mkfs,
    megabytes: pick(MEGABYTES[kind]),
    files: 20 + upTo(120),
    events: Array.from({ length: 8 + upTo(maxEvents - 8) }, () => ({
      does: pick(deeds),
      number: upTo(2 ** 30),
    })),
  }
}

export const renderLife = ({ seed, kind, mkfs, megabytes, events }: Life): string =>
  `seed ${seed}: ${kind} ${mkfs.join(' ')}, ${megabytes} MiB, ${events.length} events`
