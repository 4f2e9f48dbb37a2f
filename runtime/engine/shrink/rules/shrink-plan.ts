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
}

export interface ShrinkDisk {
  readonly sectorBytes: number
  readonly isGpt: boolean
  /** The first MiB. */
  readonly head: Buffer
  /** In the order in which they lie. */
  readonly parts: readonly ShrinkPart[]
  /** What GRUB's sector in the MBR loads first; null: no GRUB is there. */
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
export function decideFates(
  disk: ShrinkDisk,
  { canMount }: { readonly canMount: boolean },
): readonly PartFate[] {
  const looked = disk.parts.map((part) => look(disk, part))
  const last = looked.findLastIndex(({ kind }) => kind === null)
  const wall = disk.parts.findLastIndex(({ isWalled }) => isWalled)
  const isWindowsOnMbr = !disk.isGpt && looked.some(({ kind }) => kind === 'ntfs')
  function findObstacle(index: number): string | null {
    const behind = looked[last]
    if (behind !== undefined && index < last) return renderBehind(behind)
    if (index < wall) return GAP
    return isWindowsOnMbr && index < looked.length - 1 ? WINDOWS_MBR : null
  }
  const everywhere = isLilo(disk.head) ? LILO : disk.isTailUsed ? TAIL : null
  return looked.map((fate, index) => {
    if (fate.why !== null) return fate
    const why = everywhere ?? findObstacle(index)
    return { ...fate, why: why ?? (fate.kind === 'btrfs' && !canMount ? NEEDS_MOUNT : null) }
  })
}

const TAIL = 'the image has data behind its last partition'
const GAP = 'data outside all partitions lies behind it, which cannot move'
const LILO = 'LILO finds its files by block numbers'
const LOADER = 'a boot loader in it is found by block numbers'
const VERITY = 'dm-verity protects it'
const WINDOWS_MBR =
  'Windows finds its volumes by their places with an MBR, and what lies behind it would have to move'
const NEEDS_MOUNT = 'btrfs shrinks only where it is mounted, and nothing is mounted here'
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
  btrfs: null,
  xfs: 'XFS cannot shrink',
  fat: 'FAT cannot shrink',
  swap: 'swap cannot shrink',
}

/** Why it neither shrinks nor moves. */
function findPin(disk: ShrinkDisk, part: ShrinkPart, kind: Movable): string | null {
  if (part.isHashed) return VERITY
  if (hasLoader(kind, part.first) || isLoadedByGrub(disk, part)) return LOADER
  return (locateEnd(part.first) ?? 0) > part.bytes ? TOO_LARGE : null
}

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

/** The boot sectors of FAT and NTFS are never empty: those of Linux' loaders have a name in them. */
function hasLoader(kind: Movable, first: Buffer): boolean {
  const boot = first.subarray(0, BOOT_BYTES[kind])
  if (kind === 'fat' || kind === 'ntfs') return LOADERS.some((name) => boot.includes(name))
  return !isAllZero(boot)
}

const MBR_CODE = 440
const isLilo = (head: Buffer) => head.subarray(0, MBR_CODE).includes('LILO')

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
