/** Decides which file systems of a flashed disk are mounted, and with which options. */
import { type Contents, type FilledVolume, PHYSICAL_VOLUME } from './lsblk.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** Linux installs its root on them, and they can be written. */
const ROOT_FILE_SYSTEMS = ['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'f2fs'] as const
export type RootFileSystem = (typeof ROOT_FILE_SYSTEMS)[number]

export const findRootFileSystem = (type: string | null): RootFileSystem | null =>
  ROOT_FILE_SYSTEMS.find((known) => known === type) ?? null

const WHY_NOT: Readonly<Record<string, string>> = {
  [PHYSICAL_VOLUME]: 'its logical volumes are listed separately',
  crypto_LUKS: 'encrypted, so it cannot be looked into',
  linux_raid_member: 'a member of a RAID, which is not assembled here',
  swap: 'swap space',
  squashfs: 'always read-only',
  erofs: 'always read-only',
}

export function renderWhyNot({ type, table }: Pick<Contents, 'type' | 'table'>): string {
  if (type !== null) return WHY_NOT[type] ?? 'not a file system that Linux is installed on'
  return table === null
    ? 'unknown contents'
    : `it has a partition table (${table}), but the kernel shows no partitions`
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

interface FstabEntry {
  readonly spec: string
  readonly point: string
  readonly type: string
  readonly options: readonly string[]
}

export interface VolumeFolder {
  readonly volume: FilledVolume
  readonly subvolume: string | null
  /** Without a leading slash. */
  readonly folder: string
}

/** fstab(5); lines of another shape are skipped. */
export function parseFstab(text: string): readonly FstabEntry[] {
  return text.split('\n').flatMap((line) => {
    const [spec = '', point = '', type = '', options = ''] = line.trim().split(/\s+/)
    if (spec === '' || spec.startsWith('#') || !point.startsWith('/')) return []
    return {
      spec: unescape(spec.replaceAll('"', '')),
      point: unescape(point).replace(/\/+$/, '') || '/',
      type,
      options: options.split(','),
    }
  })
}

/**
 * `folder`: without a leading slash; null: the root. Refused with an entry that leads to nothing on
 * this disk.
 */
export function decideVolumeFolder(
  fstab: readonly FstabEntry[],
  folder: string,
  volumes: readonly FilledVolume[],
): Result<VolumeFolder | null, FstabEntry> {
  const entry = fstab
    .filter(({ point, options }) => point !== '/' && covers(point, folder) && isFirm(options))
    .reduce<FstabEntry | null>(
      (best, next) => (next.point.length >= (best?.point.length ?? 0) ? next : best),
      null,
    )
  if (entry === null) return accept(null)
  const volume = volumes.find((one) => isMeant(entry.spec, one))
  if (volume === undefined) return refuse(entry)
  return accept({
    volume,
    subvolume: findSubvolume(entry.options),
    folder: folder.slice(entry.point.length),
  })
}

const covers = (point: string, folder: string) => `/${folder}/`.startsWith(`${point}/`)

/** An entry that the boot may do without does not tell where a folder will be. */
const isFirm = (options: readonly string[]) =>
  !options.includes('noauto') && !options.includes('nofail')

function findSubvolume(options: readonly string[]): string | null {
  const path = options.find((option) => option.startsWith('subvol='))?.slice('subvol='.length)
  if (path !== undefined) return subvolumeOption(path)
  return options.find((option) => /^subvolid=\d{1,20}$/.test(option)) ?? null
}

type Fact = (volume: FilledVolume) => string | null
const ignoringCase = (text: string) => text.toLowerCase()
const exactly = (text: string) => text
const TAGS: Readonly<Record<string, readonly [Fact, (text: string) => string]>> = {
  UUID: [({ contents }) => contents.uuid, ignoringCase],
  LABEL: [({ contents }) => contents.label, exactly],
  PARTUUID: [({ contents }) => contents.partuuid, ignoringCase],
  PARTLABEL: [({ contents }) => contents.partlabel, exactly],
}

function isMeant(spec: string, volume: FilledVolume): boolean {
  const [, tag, value] = TAGGED.exec(spec) ?? LINKED.exec(spec) ?? []
  const known = TAGS[tag?.toUpperCase() ?? '']
  if (known !== undefined && value !== undefined) {
    const [fact, fold] = known
    return fold(fact(volume) ?? '') === fold(value)
  }
  return volume.kind === 'lvm' && (spec === volume.node || mapperNode(spec) === volume.node)
}

const TAGGED = /^([A-Z]+)=(.+)$/
const LINKED = /^\/dev\/disk\/by-([a-z]+)\/(.+)$/

/** device-mapper doubles hyphens within a name. */
function mapperNode(spec: string): string | null {
  const [, group, name] = /^\/dev\/([^/]+)\/([^/]+)$/.exec(spec) ?? []
  if (group === undefined || name === undefined) return null
  return `/dev/mapper/${group.replaceAll('-', '--')}-${name.replaceAll('-', '--')}`
}

/** fstab(5) writes blanks and tabs in octal. */
const unescape = (text: string) =>
  text.replaceAll(/\\([0-3][0-7]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  )
