/** Decides which file systems of an image shrink, what moves behind them, and why the rest stays. */
import type { AreaRole } from '#engine/capture/rules/areas.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { detectGrowable, locateEnd } from '#engine/disk/rules/file-systems.ts'
import { GPT_AT, isExtendedType } from '#engine/disk/rules/partition-tables.ts'
import { isAllZero } from '#engine/disk/rules/extents.ts'
import { judgeExt } from './ext.ts'

export interface ShrinkPart extends Range {
  readonly number: number
  readonly role: AreaRole | null
  /** Its first 128 KiB. */
  readonly first: Buffer
  /** dm-verity protects it. */
  readonly isHashed: boolean
  /** What lies between it and the partition before it is not all zeros. */
  readonly isWalled: boolean
  /** As blkid names it; null: nothing, or more than one thing. */
  readonly type: string | null
  /** What lies behind its file system, inside it, is not all zeros. */
  readonly isFollowed: boolean
  /** What ntfs-3g.probe exits with; 0 for all else. */
  readonly ntfsState: number
}

export interface ShrinkDisk {
  readonly sizeBytes: number
  readonly sectorBytes: number
  readonly isGpt: boolean
  /** The first MiB. */
  readonly head: Buffer
  /** In the order in which they lie. */
  readonly parts: readonly ShrinkPart[]
  /** What GRUB's sector in the MBR loads first; null: no GRUB is there, or that lies outside the image. */
  readonly grubCore: Buffer | null
  /** Behind the last partition is something besides the table's backup. */
  readonly isTailUsed: boolean
}

type Shrinkable = 'ext' | 'ntfs' | 'btrfs'
type Movable = Shrinkable | 'xfs' | 'fat' | 'swap'

export interface PartFate {
  readonly part: ShrinkPart
  /** Null: it never moves. */
  readonly kind: Movable | null
  readonly words: string
  /** Why it keeps its size; null: try to shrink it. */
  readonly why: string | null
}

const WORDS: Readonly<Record<Movable, string>> = {
  ext: 'ext4',
  ntfs: 'NTFS',
  btrfs: 'btrfs',
  xfs: 'XFS',
  fat: 'FAT',
  swap: 'swap',
}

const OTHERS: Readonly<Record<string, Movable>> = { FAT: 'fat', 'swap space': 'swap' }

/** Partitions in front of what never moves keep their size: nothing would be gained. */
export function decideFates(disk: ShrinkDisk): readonly PartFate[] {
  const looked = disk.parts.map((part) => look(disk, part))
  const last = looked.findLastIndex(({ kind }) => kind === null)
  const wall = disk.parts.findLastIndex(({ isWalled }) => isWalled)
  const isWindowsOnMbr = !disk.isGpt && looked.some(({ words }) => words === WORDS.ntfs)
  function findObstacle(index: number): string | null {
    const behind = looked[last]
    if (behind !== undefined && index < last) return renderBehind(behind)
    if (index < wall) return GAP
    return isWindowsOnMbr && index < looked.length - 1 ? WINDOWS_MBR : null
  }
  const everywhere = findStop(disk)
  return looked.map((fate, index) =>
    fate.why === null ? { ...fate, why: everywhere ?? findObstacle(index) } : fate,
  )
}

/** Why nothing of the image shrinks. */
function findStop(disk: ShrinkDisk): string | null {
  const { head, parts, isTailUsed } = disk
  const asleep = parts.find(isAsleep)
  if (asleep !== undefined) return renderAsleep(asleep)
  // A loader in one partition may find its files in another.
  const codes = [head, ...parts.map(({ first }) => first)].map((code) => code.subarray(0, MBR_CODE))
  if (codes.some((code) => code.includes('LILO'))) return LILO
  if (codes.some((code) => code.indexOf('zIPL') === 0)) return ZIPL
  if (codes.slice(1).some((code) => code.includes('GRUB')) || isGrubLost(disk)) return GRUB
  if (parts.some(({ role }) => role === 'extended')) return EXTENDED
  return isTailUsed ? TAIL : null
}

/** ntfs-3g.probe, of Windows; swap of Linux has a word at the end of its first page. */
const HIBERNATED = 14
const PAGES = [4096, 8192, 16_384, 32_768, 65_536]
const ASLEEP = ['S1SUSPEND', 'S2SUSPEND', 'ULSUSPEND', 'LINHIB000']

const isAsleep = ({ first, ntfsState }: ShrinkPart) =>
  ntfsState === HIBERNATED ||
  PAGES.some((page) => ASLEEP.includes(first.toString('latin1', page - 10, page - 1)))

const renderAsleep = ({ number, ntfsState }: ShrinkPart) =>
  ntfsState === HIBERNATED
    ? `Windows is hibernated in partition ${number}: shut it down fully first (shutdown /s /f /t 0)`
    : `a Linux is hibernated in partition ${number}: start it, and shut it down`

const TAIL = 'the image has data behind its last partition'
const GAP = 'data outside all partitions lies behind it, which cannot move'
const LILO = 'LILO finds its files by block numbers'
const ZIPL = 'zIPL finds its files by block numbers'
const GRUB = 'a GRUB of this image loads what is not known here'
const EXTENDED = 'what lies in its extended partition is not known here'
const LOADER = 'a boot loader in it is found by block numbers'
const VERITY = 'dm-verity protects it'
const WINDOWS_MBR =
  'Windows finds its volumes by their places with an MBR, and what lies behind it would have to move'
const FOLLOWED = 'data lies behind its file system, inside the partition'
const SHADOWS = 'it has shadow copies of Windows: delete its shadow copies first'
const UNCLEAN = 'it was not unmounted cleanly: shut Windows down fully first'
const TOO_LARGE = 'its file system is larger than its partition'

const renderBehind = ({ part, words }: PartFate) =>
  `partition ${part.number} (${words}) lies behind it and cannot move`

function look(disk: ShrinkDisk, part: ShrinkPart): PartFate {
  const { first, role } = part
  const found = detectGrowable(first)
  const kind = found.ok ? found.value : (OTHERS[found.refusal] ?? null)
  const words = kind === null ? describe(disk, part, found.ok ? '' : found.refusal) : WORDS[kind]
  const isPlain = role === 'data' || role === 'swap'
  if (kind === null || !isPlain) return { part, kind: null, words, why: EMPTY }
  const why = findPin(disk, part, kind)
  if (why !== null) return { part, kind: null, words, why }
  return { part, kind, words, why: kind === 'ext' ? judgeExt(first) : FIXED[kind] }
}

const EMPTY = 'it holds nothing that can shrink'
const FIXED: Readonly<Record<Exclude<Movable, 'ext'>, string | null>> = {
  ntfs: null,
  btrfs: 'btrfs shrinks only where it is mounted, and nothing is mounted here',
  xfs: 'XFS cannot shrink',
  fat: 'FAT cannot shrink',
  swap: 'swap cannot shrink',
}

/** Why it neither shrinks nor moves. */
function findPin(disk: ShrinkDisk, part: ShrinkPart, kind: Movable): string | null {
  const { first, type, bytes } = part
  if (part.isHashed) return VERITY
  if (hasLoader(kind, first) || isLoadedByGrub(disk, part)) return LOADER
  if ((locateEnd(first) ?? 0) > bytes) return TOO_LARGE
  if (kindOf(type) !== kind) return renderOther(type)
  if (part.isFollowed) return FOLLOWED
  return kind === 'ntfs' ? findNtfsPin(part) : null
}

function findNtfsPin({ first, ntfsState }: ShrinkPart): string | null {
  if (hasShadows(first)) return SHADOWS
  if (ntfsState === 0 || ntfsState === HIBERNATED) return null
  return ntfsState === 15 ? UNCLEAN : 'ntfs-3g cannot read it'
}

const renderOther = (type: string | null) =>
  `blkid takes it for something else (${type ?? 'unclear'})`

const kindOf = (type: string | null): Movable | null =>
  type === null ? null : (TYPES[type] ?? null)

const TYPES: Readonly<Record<string, Movable>> = {
  ext2: 'ext',
  ext3: 'ext',
  ext4: 'ext',
  ntfs: 'ntfs',
  btrfs: 'btrfs',
  xfs: 'xfs',
  vfat: 'fat',
  swap: 'swap',
}

/** The header of its volume shadow copies, which find blocks by their places, and where their list begins. */
const VSS = Buffer.from('6b87083876c1484eb7ae04046e6cc752', 'hex')
const VSS_AT = { header: 0x1e00, list: 0x1e30 } as const

const hasShadows = (first: Buffer) =>
  first.subarray(VSS_AT.header, VSS_AT.header + VSS.length).equals(VSS) &&
  first.readBigUInt64LE(VSS_AT.list) !== 0n

function describe({ isGpt, head }: ShrinkDisk, { number, role }: ShrinkPart, words: string) {
  if (role === 'boot-loader') return 'a boot loader or reserved space'
  const isExtended = !isGpt && isExtendedType(head.readUInt8(446 + (number - 1) * 16 + 4))
  return isExtended ? 'an extended partition' : words
}

/** Where a file system leaves room in front of itself, and what of it a loader fills. */
const BOOT_BYTES: Readonly<Record<Movable, number>> = {
  ext: 1024,
  btrfs: 64 * 1024,
  swap: 1024,
  xfs: 0,
  fat: 512,
  ntfs: 512,
}
const LOADERS = ['SYSLINUX', 'EXTLINUX', 'ldlinux', 'LDLINUX', 'LILO', 'GRUB']
/** In the boot code of Windows, and in mkntfs's. */
const NTFS_CODES = ['BOOTMGR', 'NTLDR', 'This is not a bootable disk']

/** The boot sectors of FAT and NTFS are never empty. Linux' loaders leave their name on FAT; NTFS keeps its own. */
function hasLoader(kind: Movable, first: Buffer): boolean {
  const boot = first.subarray(0, BOOT_BYTES[kind])
  if (kind === 'ntfs' && !NTFS_CODES.some((words) => boot.includes(words))) return true
  if (kind === 'fat' || kind === 'ntfs') return LOADERS.some((name) => boot.includes(name))
  return !isAllZero(boot)
}

const MBR_CODE = 440

/** GRUB's boot.img: the sector that it loads. Null: no GRUB in the MBR. */
export const locateGrubCore = (head: Buffer): number | null =>
  head.subarray(0, MBR_CODE).includes('GRUB') ? Number(head.readBigUInt64LE(0x5c)) : null

const BLOCK_LIST = { last: 500, least: 200, bytes: 12 } as const

/** Places on the disk from which GRUB's code is loaded; its list grows downwards from its sector's end. */
function listGrubSectors({ head, grubCore }: ShrinkDisk): readonly number[] {
  const core = locateGrubCore(head)
  if (core === null || grubCore === null) return []
  const sectors = [core]
  for (let at: number = BLOCK_LIST.last; at > BLOCK_LIST.least; at -= BLOCK_LIST.bytes) {
    if (grubCore.readUInt16LE(at + 8) === 0) break
    sectors.push(Number(grubCore.readBigUInt64LE(at)))
  }
  return sectors
}

/** GRUB Legacy has code where GRUB has the number of a sector: one outside the image. */
const isGrubLost = (disk: ShrinkDisk): boolean =>
  locateGrubCore(disk.head) !== null &&
  (disk.grubCore === null ||
    listGrubSectors(disk).some((sector) => sector === 0 || sector * 512 >= disk.sizeBytes))

function isLoadedByGrub(disk: ShrinkDisk, { offset, bytes }: Range): boolean {
  return listGrubSectors(disk).some((sector) => {
    const at = sector * 512
    return at >= offset && at < offset + bytes
  })
}

const saved = ({ bytes, oldBytes }: Pick<Place, 'bytes' | 'oldBytes'>) => oldBytes - bytes

export interface Place {
  readonly number: number
  readonly kind: Movable
  readonly words: string
  readonly from: number
  readonly to: number
  readonly oldBytes: number
  readonly bytes: number
}

export interface Layout {
  /** From the first that shrinks on, in their new order; those in front stay. */
  readonly places: readonly Place[]
  readonly sizeBytes: number
  readonly notes: readonly string[]
}

const ALIGNMENT: number = 1024 * 1024
const alignUp = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT

/** With the reserve, in whole MiB. */
export const planSize = (leastBytes: number, reservePercent: number): number =>
  alignUp(leastBytes * (1 + reservePercent / 100))

/** `sizes`: of those that became smaller, by their numbers; at least one. */
export function planLayout(
  disk: ShrinkDisk,
  fates: readonly PartFate[],
  sizes: ReadonlyMap<number, number>,
): Layout {
  const start = fates.findIndex(({ part }) => sizes.has(part.number))
  const behind = fates.slice(start).flatMap(({ part, kind, words }) => {
    if (kind === null) return []
    const { number, offset: from, bytes: oldBytes } = part
    return [{ number, kind, words, from, oldBytes, bytes: sizes.get(number) ?? oldBytes }]
  })
  const most = Math.max(...behind.map(saved))
  const last = behind.find((place) => saved(place) === most)
  const others = behind.filter((place) => place !== last)
  const order = [
    ...others.filter((place) => saved(place) === 0),
    ...others.filter((place) => saved(place) > 0),
    ...(last === undefined ? [] : [last]),
  ]
  let at = fates[start]?.part.offset ?? 0
  const places = order.map((place) => {
    const to = at
    at = alignUp(to + place.bytes)
    return { ...place, to }
  })
  const end = Math.max(0, ...places.map(({ to, bytes }) => to + bytes))
  const sizeBytes = alignUp(end + backupBytes(disk))
  return { places, sizeBytes, notes: listNotes(disk, places) }
}

function backupBytes({ isGpt, head, sectorBytes }: ShrinkDisk): number {
  if (!isGpt) return 0
  const header = head.subarray(sectorBytes)
  const entries = header.readUInt32LE(GPT_AT.entryCount) * header.readUInt32LE(GPT_AT.entryBytes)
  return (Math.ceil(entries / sectorBytes) + 1) * sectorBytes
}

function listNotes({ isGpt }: ShrinkDisk, places: readonly Place[]): readonly string[] {
  const notes = places
    .slice(0, -1)
    .filter(({ bytes, oldBytes }) => bytes < oldBytes)
    .map(
      ({ number, words }) =>
        `Partition ${number} (${words}) is not the last one on the disk: --grow does not grow it again.`,
    )
  const isWindowsMoved = places.some(({ kind, from, to }) => kind === 'ntfs' && from !== to)
  if (isGpt && isWindowsMoved) notes.push(REAGENTC)
  return notes
}

const REAGENTC =
  'Windows finds its recovery system by its place, which changed: run "reagentc /disable" and "reagentc /enable" in Windows.'

/** Why a partition keeps its size, as a sentence. */
export const renderStay = (number: number, words: string, why: string): string =>
  `Partition ${number} (${words}) keeps its size: ${why}.`
