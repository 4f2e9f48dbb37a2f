/** A disk: its properties, its uses, and the facts required before it may be overwritten. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'

export interface DiskIdentity {
  readonly serial: string | null
  readonly wwn: string | null
  readonly sizeBytes: number
  /** /sys/block/X/diskseq: grows with every disk that appears; null before Linux 5.15. */
  readonly diskseq: number | null
}

/** `device` is the part in use. */
export type DiskUse =
  | {
      readonly kind: 'mounted'
      readonly device: string
      readonly at: string
      /** A process whose mount namespace shows it; absent: ours does. */
      readonly process?: number
    }
  | { readonly kind: 'swap'; readonly device: string }
  /** LVM, RAID, dm-crypt, bcache…: `holder` is the device built on top, `what` its lsblk type. */
  | {
      readonly kind: 'holder'
      readonly device: string
      readonly holder: string
      readonly what: string
    }
  | { readonly kind: 'zfs'; readonly device: string; readonly pool: string }
  /** A member of a mounted btrfs that the mount table does not name. */
  | { readonly kind: 'btrfs'; readonly device: string; readonly uuid: string }
  /** Its backing is this very device. */
  | { readonly kind: 'loop'; readonly device: string; readonly loop: string }
  | { readonly kind: 'running-system'; readonly device: string }
  | { readonly kind: 'holds-image'; readonly device: string }

/** `allocated` as a whole, where the file system can zero it in place; `sparse`: any other. */
export type LoopBacking = 'allocated' | 'sparse'

export interface ZeroFacts {
  readonly loop: LoopBacking | null
  /** Of queue/write_zeroes_max_bytes and queue/discard_max_bytes; 0: unsupported. */
  readonly writeZeroesMaxBytes: number
  readonly discardMaxBytes: number
}

export interface TargetDevice {
  /** Links resolved: `/dev/sda`. */
  readonly node: string
  /** lsblk's TYPE: disk, part, loop, lvm, crypt, mpath, raid1, rom… */
  readonly type: string
  readonly sectorBytes: number
  readonly readonly: boolean
  readonly vendor: string | null
  readonly model: string | null
  readonly tran: string | null
  readonly identity: DiskIdentity
  readonly zeros: ZeroFacts
  readonly uses: readonly DiskUse[]
}

/** `device` null: no block device. */
export interface TargetFacts {
  readonly path: string
  readonly exists: boolean
  readonly device: TargetDevice | null
}

/** A partition, or the content of a disk without partitions. */
export interface DiskPart {
  readonly device: string
  readonly sizeBytes: number
  /** As blkid names it: `ext4`, `LVM2_member`…; null: unknown. */
  readonly fstype: string | null
  readonly label: string | null
  readonly partlabel: string | null
}

export interface SurveyedDisk {
  readonly path: string
  readonly removable: boolean
  readonly device: TargetDevice
  readonly parts: readonly DiskPart[]
}

/** No image belongs on these: by major number, else by name, as numbers differ among boots. */
const APART = [
  [/^1:/, /^ram\d/, 'memory'],
  [/^$/, /^zram\d/, 'memory'],
  [/^2:/, /^fd\d/, 'floppy'],
  // The chip that holds a board's firmware.
  [/^31:/, /^mtdblock\d/, 'flash chip'],
  [/^$/, /^mmcblk\d+(boot\d+|rpmb)$/, 'eMMC boot area'],
] as const

type ApartKind = (typeof APART)[number][2]

/** `dev`: `major:minor`. Null: a disk, or nothing that passes for one. */
export const decideApart = ({
  name,
  dev,
}: {
  readonly name: string
  readonly dev: string
}): ApartKind | null =>
  APART.find(([numbers, names]) => numbers.test(dev) || names.test(name))?.[2] ?? null

/**
 * With an equal `diskseq` nothing was plugged in between, and a serial or WWN may become known
 * (udev is slow) or be lost. Without it a disk that suddenly has a serial is another one.
 */
export function isSameDisk(before: DiskIdentity, now: DiskIdentity): boolean {
  const hasBoth = before.diskseq !== null && now.diskseq !== null
  if (hasBoth && before.diskseq !== now.diskseq) return false
  const isSame = (a: string | null, b: string | null) =>
    a === b || (hasBoth && (a === null || b === null))
  return (
    isSame(before.serial, now.serial) &&
    isSame(before.wwn, now.wwn) &&
    before.sizeBytes === now.sizeBytes
  )
}

/** For people. A virtio disk gives the PCI number of its vendor, and no model. */
export const nameMaker = ({ vendor, model }: Pick<TargetDevice, 'vendor' | 'model'>) =>
  vendor === '0x1af4' ? { vendor: null, model: model ?? 'virtio disk' } : { vendor, model }

const TYPE_TEXTS: Readonly<Record<string, string>> = {
  lvm: 'LVM',
  crypt: 'encrypted',
  mpath: 'multipath',
  part: 'partition',
  dm: 'device mapper',
}
const typeInWords = (type: string) =>
  Object.hasOwn(TYPE_TEXTS, type) ? TYPE_TEXTS[type] : type.replace(/^raid(\d+)$/, 'RAID $1')

/** No file name gets to move the cursor. */
export function renderMountPoint({ at, process }: Extract<DiskUse, { kind: 'mounted' }>): string {
  const shown = at.replaceAll(/\p{Cc}/gu, '?')
  return process === undefined ? shown : `${shown} (seen by process ${process})`
}

const USE_TEXTS: Cases<'kind', DiskUse, string> = {
  mounted: (use) => `${use.device} is mounted on ${renderMountPoint(use)}`,
  swap: ({ device }) => `${device} is swap space in use`,
  holder: ({ device, holder, what }) => `${device} is in use by ${holder} (${typeInWords(what)})`,
  zfs: ({ device, pool }) => `${device} belongs to the ZFS pool ${pool}`,
  btrfs: ({ device, uuid }) => `${device} belongs to the mounted btrfs file system ${uuid}`,
  loop: ({ device, loop }) => `${device} is used by ${loop}`,
  'running-system': ({ device }) => `${device} holds the running system`,
  'holds-image': ({ device }) => `${device} holds the image`,
}

const USER_TEXTS: Cases<'kind', DiskUse, string> = {
  mounted: renderMountPoint,
  swap: () => 'swap',
  holder: ({ holder, what }) => `${holder} (${typeInWords(what)})`,
  zfs: ({ pool }) => `ZFS pool ${pool}`,
  btrfs: () => 'btrfs',
  loop: ({ loop }) => loop,
  'running-system': () => 'this system',
  'holds-image': () => 'image',
}

export function listUsers(uses: readonly DiskUse[]): readonly string[] {
  const isSystem = ({ kind }: DiskUse) => kind === 'running-system'
  const ordered = [...uses.filter(isSystem), ...uses.filter((use) => !isSystem(use))]
  return [...new Set(ordered.map((use) => decideCase(USER_TEXTS, 'kind', use)))]
}

/** `/dev/sda1 is mounted on /home`. */
export const renderUse = (use: DiskUse): string => decideCase(USE_TEXTS, 'kind', use)

// A disk as this machine reports it to the server ("InventoryDisk").

/** The server refuses the whole list for a longer text. */
const MAX = {
  path: 255,
  size: 32,
  vendor: 64,
  model: 128,
  serial: 128,
  tran: 32,
  name: 122,
} as const
/** The server only counts further ones. */
const MAX_DISKS = 1024
export const MAX_FOR_OLDER_SERVERS = 64

/** Flashable ones first, as a server may keep fewer. `byPath`: names of /dev/disk/by-path. */
export const listInventory = (
  disks: readonly SurveyedDisk[],
  byPath: ReadonlyMap<string, string>,
): readonly InventoryDisk[] =>
  disks
    .filter(({ path }) => path.length <= MAX.path)
    .toSorted((a, b) => Number(isKeptBack(a)) - Number(isKeptBack(b)))
    .slice(0, MAX_DISKS)
    .map((disk) => toInventory(disk, byPath.get(disk.device.node) ?? byPath.get(disk.path) ?? null))

const isKeptBack = ({ device: { readonly, identity, uses } }: SurveyedDisk): boolean =>
  readonly || identity.sizeBytes === 0 || uses.length > 0

function toInventory(
  { path, removable, device }: SurveyedDisk,
  name: string | null,
): InventoryDisk {
  const { vendor, model, tran, readonly, identity } = device
  return {
    path,
    size: renderListedSize(identity.sizeBytes),
    vendor: cut(vendor, MAX.vendor),
    model: cut(model, MAX.model),
    // Part of a serial would not find the disk again.
    serial: fitting(identity.serial, MAX.serial),
    tran: cut(tran, MAX.tran),
    removable,
    readonly,
    wwn: fitting(identity.wwn, MAX.name),
    by_path: fitting(name, MAX.name),
    size_bytes: identity.sizeBytes,
  }
}

const UNITS = ['B', 'K', 'M', 'G', 'T', 'P']

/** As lsblk: `465.8G`, `64M`. */
export function renderListedSize(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(5, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** power
  return `${Number(value.toFixed(1))}${UNITS[power] ?? ''}`
}

const cut = (text: string | null, most: number) => text?.slice(0, most) ?? null
const fitting = (text: string | null, most: number) =>
  text !== null && text.length <= most ? text : null

/** By disk; of several links the first by name. */
export function chooseNames(
  links: readonly { readonly name: string; readonly node: string }[],
): ReadonlyMap<string, string> {
  const whole = links.filter(({ name }) => !/-part\d+$/.test(name))
  const sorted = whole.toSorted((a, b) => (a.name < b.name ? 1 : -1))
  return new Map(sorted.map(({ name, node }) => [node, name]))
}
