/** Decides how the used blocks of a partition are found, or that it is read whole; counts them a second time on FAT, ext, XFS and exFAT. */
import type { Range } from '#engine/disk/rules/extents.ts'
import {
  isHashedBeside,
  MAX_HASHED_SHARE,
  type Neighbour,
  readFileSystemBytes,
} from '#engine/disk/rules/file-systems.ts'
import type { Contents } from '#engine/disk/rules/lsblk.ts'
import { hasDosStates, readDosEntries } from '#engine/disk/rules/partition-tables.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { AreaRole } from './areas.ts'
import {
  type Chunk,
  createUnitCheck,
  isAtMostFree,
  isCovered,
  listPieces,
  type Looked,
  MAX_READING_BYTES,
  parseChunks,
  type SecondReading,
  tooFree,
  unreadable,
  walkBtrfs,
} from './second-reading.ts'

/** With fewer clusters entries have 12 bits. */
const MIN_FAT16_CLUSTERS = 4085
const FAT32_BITS = 0x0fff_ffff

function readFatFacts(first: Buffer) {
  const sectorBytes = first.readUInt16LE(11)
  const [tables, shortTable] = [first.readUInt8(16), first.readUInt16LE(22)]
  const tableSectors = shortTable === 0 ? first.readUInt32LE(36) : shortTable
  const sectors = first.readUInt16LE(19) || first.readUInt32LE(32)
  const rootSectors = Math.ceil((first.readUInt16LE(17) * 32) / Math.max(1, sectorBytes))
  const reserved = first.readUInt16LE(14)
  const heap = reserved + tables * tableSectors + rootSectors
  const clusterSectors = first.readUInt8(13)
  const clusters = Math.max(0, Math.floor((sectors - heap) / Math.max(1, clusterSectors)))
  const isFat32 = shortTable === 0
  const flags = isFat32 ? first.readUInt16LE(40) : 0
  return {
    clusters,
    /** 12, 16 or 32; as Linux tells them apart. */
    bits: isFat32 ? 32 : clusters < MIN_FAT16_CLUSTERS ? 12 : 16,
    clusterBytes: clusterSectors * sectorBytes,
    heapOffset: heap * sectorBytes,
    tableBytes: tableSectors * sectorBytes,
    /** A flag names the active table unless all are kept alike. */
    tableOffset: (reserved + ((flags & 0x80) === 0 ? 0 : flags & 15) * tableSectors) * sectorBytes,
  }
}

type FatFacts = ReturnType<typeof readFatFacts>

const isSound = (
  { bits, clusters, clusterBytes, heapOffset, tableBytes }: FatFacts,
  bytes: number,
) =>
  bits > 12 &&
  clusters > 0 &&
  clusterBytes > 0 &&
  heapOffset + clusters * clusterBytes <= bytes &&
  (clusters + FIRST_CLUSTER) * (bits / 8) <= tableBytes

export function* walkFat({ first, bytes, used }: Looked): SecondReading {
  const facts = readFatFacts(first)
  if (!isSound(facts, bytes)) return unreadable('its boot sector')
  const { bits, clusters, clusterBytes, heapOffset, tableOffset } = facts
  if (!isCovered(used, { offset: 0, bytes: heapOffset })) return tooFree(TABLE)
  const entryBytes = bits / 8
  const check = createUnitCheck(used, { offset: heapOffset, unitBytes: clusterBytes })
  let entry = 0
  for (const piece of listPieces({ offset: tableOffset, bytes: (clusters + 2) * entryBytes })) {
    const [table] = yield [piece]
    if (table === undefined) return unreadable(TABLE)
    for (let at = 0; at < table.length; at += entryBytes, entry += 1) {
      const next = bits === 16 ? table.readUInt16LE(at) : table.readUInt32LE(at) & FAT32_BITS
      if (next !== 0 && entry >= FIRST_CLUSTER) check.take(entry - FIRST_CLUSTER)
    }
  }
  return check.end() ? null : tooFree(TABLE)
}

const TABLE = 'its table of clusters'

/** ntfsresize rounds up to those. */
const MEGABYTE = 1e6
const FILES = 'its table of files'

/**
 * `ntfsresize --info` omits the space in use where files and bitmap differ. Its exit code does not
 * help: it is 1 for a full volume.
 */
export function judgeNtfs(printed: string, usedBytes: number): string | null {
  const [, megabytes] = /^Space in use\s*: (\d{1,12}) MB/m.exec(printed) ?? []
  if (megabytes === undefined) return onlyLostClusters(printed) ? null : unreadable(FILES)
  return usedBytes > (Number(megabytes) - 1) * MEGABYTE ? null : tooFree(FILES)
}

/** Used clusters without a file are harmless; of more than ten mismatches the kind is unknown. */
function onlyLostClusters(printed: string): boolean {
  const [, total] = /^Filesystem check failed! Totally (\d{1,9}) cluster/m.exec(printed) ?? []
  const extra = printed.match(/^Cluster accounting failed at \d+ .*: extra cluster/gm) ?? []
  return total !== undefined && extra.length === Number(total)
}

/** Every superblock is in the first bytes of a volume. */
export const SUPERBLOCK_BYTES: number = 128 * 1024

export type PartitionReading =
  | (Bounded & Pick<MapTool, 'tool' | 'check' | 'witness'> & { readonly by: 'map' })
  | (Bounded & { readonly by: 'ranges' })
  | { readonly by: 'whole'; readonly why: string }

interface Bounded {
  /** In ascending order, whatever a map says. */
  readonly always: readonly Range[]
  readonly ownBytes: number
  /** Much space behind it: all of the partition is read if this is not empty. */
  readonly behind: Range | null
}

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

const whole = (why: string): PartitionReading => ({ by: 'whole', why })

const FIRST: Range = { offset: 0, bytes: MIB }

/** No map is believed alone. */
export type Witness =
  | { readonly by: 'reading'; readonly walk: (looked: Looked) => SecondReading }
  /** `judge`: what speaks against the map, or null. */
  | {
      readonly by: 'tool'
      readonly argv: readonly string[]
      readonly judge: (printed: string, usedBytes: number) => string | null
    }

interface MapTool {
  readonly tool: string
  readonly witness: Witness
  readonly check?: {
    readonly argv: readonly string[]
    /**
     * Refused with what speaks against the map; chunks where the file system's blocks are all over
     * the place.
     */
    readonly judge: (said: {
      readonly exitCode: number
      readonly stdout: string
    }) => Result<readonly Chunk[], string>
  }
  /** Why its map would be wrong; null: nothing. */
  readonly judge: (first: Buffer) => string | null
  readonly more?: readonly Range[]
}

const reading = (walk: (looked: Looked) => SecondReading): Witness => ({ by: 'reading', walk })

/** Offsets in a superblock, which begins 1024 bytes into the file system. */
const SUPER = 1024
const HAS_BACKUPS_OF_TWO = 0x200
const SPARSE_SUPER = 0x1
const META_GROUPS = 0x10
const LONG = 0x80

function readExtFacts(first: Buffer) {
  const block = first.subarray(SUPER, 2 * SUPER)
  const at = (offset: number) => block.readUInt32LE(offset)
  const isLong = (at(0x60) & LONG) !== 0
  return {
    blocks: at(0x04) + (isLong ? at(0x150) * 2 ** 32 : 0),
    firstBlock: at(0x14),
    blockBytes: 1024 << (at(0x18) & 15),
    clusterBytes: 1024 << (at(0x1c) & 31),
    groupBlocks: at(0x20),
    /** Up to this group the descriptors lie together; later ones are spread over the disk. */
    firstMeta: (at(0x60) & META_GROUPS) === 0 ? null : at(0x104),
    descriptorBytes: isLong ? block.readUInt16LE(0xfe) : 32,
    backups: (at(0x5c) & HAS_BACKUPS_OF_TWO) === 0 ? null : [at(0x24c), at(0x250)],
    isSparse: (at(0x64) & SPARSE_SUPER) !== 0,
  }
}

type ExtFacts = ReturnType<typeof readExtFacts>

const isSoundExt = (facts: ExtFacts, bytes: number) =>
  facts.blockBytes <= 65_536 &&
  facts.clusterBytes >= facts.blockBytes &&
  facts.blocks > facts.firstBlock &&
  facts.blocks * facts.blockBytes <= bytes &&
  facts.groupBlocks >= 8 &&
  facts.groupBlocks <= 8 * facts.clusterBytes &&
  [32, 64, 128, 256, 512, 1024].includes(facts.descriptorBytes)

function hasSuper(group: number, { backups, isSparse }: ExtFacts): boolean {
  if (group === 0) return true
  if (backups !== null) return backups.includes(group)
  return !isSparse || group === 1 || [3, 5, 7].some((base) => isPowerOf(base, group))
}

function isPowerOf(base: number, number: number): boolean {
  let power = base
  while (power < number) power *= base
  return power === number
}

function* listMetadata(facts: ExtFacts, groups: number): Generator<Range> {
  const { blockBytes, descriptorBytes, firstMeta, firstBlock, groupBlocks } = facts
  const blocks = Math.ceil((groups * descriptorBytes) / blockBytes)
  const together = firstMeta === null ? blocks : Math.min(firstMeta, blocks)
  const superBlock = Math.floor(SUPER / blockBytes)
  if (together > 0) {
    const offset = (superBlock + 1) * blockBytes
    yield* listPieces({ offset, bytes: together * blockBytes })
  }
  for (let block = together; block < blocks; block += 1) {
    const group = block * (blockBytes / descriptorBytes)
    const start = group === 0 ? superBlock : firstBlock + group * groupBlocks
    yield { offset: (start + Number(hasSuper(group, facts))) * blockBytes, bytes: blockBytes }
  }
}

export function* walkExt({ first, bytes, used }: Looked): SecondReading {
  const facts = readExtFacts(first)
  if (!isSoundExt(facts, bytes)) return unreadable('its superblock')
  const { blocks, firstBlock, blockBytes, groupBlocks, clusterBytes, descriptorBytes } = facts
  const groups = Math.ceil((blocks - firstBlock) / groupBlocks)
  let group = 0
  for (const metadata of listMetadata(facts, groups)) {
    const [table] = yield [metadata]
    if (table === undefined) return unreadable('its table of block groups')
    for (let at = 0; at < table.length && group < groups; at += descriptorBytes, group += 1) {
      const high = descriptorBytes >= 64 ? table.readUInt16LE(at + 0x2c) * 2 ** 16 : 0
      const free = (table.readUInt16LE(at + 0x0c) + high) * clusterBytes
      const start = firstBlock + group * groupBlocks
      const end = Math.min(start + groupBlocks, blocks)
      const range = { offset: start * blockBytes, bytes: (end - start) * blockBytes }
      if (!isAtMostFree(used, range, free)) return tooFree(`block group ${group}`)
    }
  }
  return null
}

/** XFS: how many blocks its allocation groups and its superblock say are free. */
const MAX_AT_ONCE = 64
/** The superblock's count is exact only where it is counted lazily, as on all but very old ones. */
const LAZY_COUNT = 2
const AGF_MAGIC = 0x5841_4746

/** Big-endian. */
const readXfsFacts = (first: Buffer) => ({
  blockBytes: first.readUInt32BE(4),
  blocks: Number(first.readBigUInt64BE(8)),
  groupBlocks: first.readUInt32BE(84),
  groups: first.readUInt32BE(88),
  sectorBytes: first.readUInt16BE(102),
  freeBlocks: Number(first.readBigUInt64BE(144)),
  isLazy: (first.readUInt32BE(200) & LAZY_COUNT) !== 0,
})

type XfsFacts = ReturnType<typeof readXfsFacts>

const isPower = (size: number) => size >= 512 && size <= 65_536 && (size & (size - 1)) === 0

const isSoundXfs = (
  { blockBytes, blocks, groupBlocks, groups, sectorBytes }: XfsFacts,
  bytes: number,
) =>
  isPower(blockBytes) &&
  isPower(sectorBytes) &&
  blocks * blockBytes <= bytes &&
  groupBlocks > 0 &&
  groups === Math.ceil(blocks / groupBlocks)

/** `listed`: free blocks kept at hand for the trees of free blocks. */
interface AllocationGroup {
  readonly free: number
  readonly listed: number
  /** Blocks of those trees, which the superblock counts as free. */
  readonly trees: number
}

function parseGroup(header: Buffer, number: number): AllocationGroup | null {
  if (header.readUInt32BE(0) !== AGF_MAGIC || header.readUInt32BE(8) !== number) return null
  const [listed, free, trees] = [48, 52, 60].map((at) => header.readUInt32BE(at))
  if (listed === undefined || free === undefined || trees === undefined) return null
  return { free, listed, trees }
}

export function* walkXfs({ first, bytes, used }: Looked): SecondReading {
  const facts = readXfsFacts(first)
  if (!isSoundXfs(facts, bytes)) return unreadable('its superblock')
  const { blockBytes, blocks, groupBlocks, groups, sectorBytes } = facts
  const startOf = (group: number) => group * groupBlocks * blockBytes
  let [free, trees] = [0, 0]
  for (let from = 0; from < groups; from += MAX_AT_ONCE) {
    const count = Math.min(MAX_AT_ONCE, groups - from)
    const headers = yield Array.from({ length: count }, (_, index) => ({
      offset: startOf(from + index) + sectorBytes,
      bytes: sectorBytes,
    }))
    for (const [index, header] of headers.entries()) {
      const number = from + index
      const group = parseGroup(header, number)
      if (group === null) return unreadable(`allocation group ${number}`)
      const length = Math.min(groupBlocks, blocks - number * groupBlocks) * blockBytes
      const allowed = group.free + group.listed
      const range = { offset: startOf(number), bytes: length }
      if (!isAtMostFree(used, range, allowed * blockBytes)) return tooFree('an allocation group')
      free += allowed
      trees += group.trees
    }
  }
  return facts.isLazy && free > facts.freeBlocks - trees ? tooFree('its superblock') : null
}

/** Clusters are counted from 2, those of FAT as well. */
const FIRST_CLUSTER = 2
const ENTRY_BYTES = 32
const BITMAP_ENTRY = 0x81
/** The bitmap's entry is at the beginning of the root folder; the search ends here. */
const MAX_ROOT_CLUSTERS = 64

const readExfatFacts = (first: Buffer) => {
  const sectorBytes = 1 << (first.readUInt8(108) & 15)
  return {
    sectorBytes,
    tableOffset: first.readUInt32LE(80) * sectorBytes,
    tableBytes: first.readUInt32LE(84) * sectorBytes,
    heapOffset: first.readUInt32LE(88) * sectorBytes,
    clusters: first.readUInt32LE(92),
    root: first.readUInt32LE(96),
    clusterBytes: sectorBytes * 2 ** (first.readUInt8(109) & 31),
    tables: first.readUInt8(110),
  }
}

type ExfatFacts = ReturnType<typeof readExfatFacts>

const isSoundExfat = (facts: ExfatFacts, bytes: number) =>
  facts.tables === 1 &&
  facts.sectorBytes >= 512 &&
  facts.clusters > 0 &&
  (facts.clusters + FIRST_CLUSTER) * 4 <= facts.tableBytes &&
  facts.tableOffset + facts.tableBytes <= facts.heapOffset &&
  facts.clusterBytes <= 2 ** 25 &&
  facts.heapOffset + facts.clusters * facts.clusterBytes <= bytes

export function* walkExfat({ first, bytes, used }: Looked): SecondReading {
  const facts = readExfatFacts(first)
  if (!isSoundExfat(facts, bytes)) return unreadable('its boot sector')
  const { heapOffset, clusterBytes, clusters } = facts
  if (!isCovered(used, { offset: 0, bytes: heapOffset })) return tooFree('its table of clusters')
  const check = createUnitCheck(used, { offset: heapOffset, unitBytes: clusterBytes })
  const start = yield* findBitmap(facts)
  const count = Math.ceil(clusters / 8 / clusterBytes)
  const runs = start === null ? [] : yield* listRuns(facts, start, count)
  let unit = 0
  for (const piece of runs.flatMap((run) => [...listPieces(run)])) {
    const [bits = Buffer.alloc(0)] = yield [piece]
    for (const byte of bits) {
      listBits(byte, clusters - unit).forEach((bit) => check.take(unit + bit))
      unit += 8
    }
  }
  if (unit < clusters) return unreadable(BITMAP)
  return check.end() ? null : tooFree(BITMAP)
}

const listBits = (byte: number, count: number): readonly number[] =>
  byte === 0 ? [] : BITS.filter((bit) => bit < count && ((byte >> bit) & 1) === 1)

const BITS = [0, 1, 2, 3, 4, 5, 6, 7]

const BITMAP = 'its bitmap'

type BitmapReading<Found> = Generator<readonly Range[], Found, readonly Buffer[]>

/** First cluster; null: the root folder does not name it where it should. */
function* findBitmap(facts: ExfatFacts): BitmapReading<number | null> {
  for (const run of yield* listRuns(facts, facts.root, MAX_ROOT_CLUSTERS)) {
    for (const piece of listPieces(run)) {
      const [entries = Buffer.alloc(0)] = yield [piece]
      const found = findEntry(entries)
      if (found !== 'further') return found
    }
  }
  return null
}

function findEntry(entries: Buffer): number | null | 'further' {
  for (let at = 0; at < entries.length; at += ENTRY_BYTES) {
    const type = entries.readUInt8(at)
    if (type === 0) return null
    if (type === BITMAP_ENTRY) return entries.readUInt32LE(at + 20)
  }
  return 'further'
}

function* listRuns(
  facts: ExfatFacts,
  start: number,
  count: number,
): BitmapReading<readonly Range[]> {
  const { tableOffset, heapOffset, clusterBytes, clusters } = facts
  const last = clusters + FIRST_CLUSTER - 1
  const runs: Range[] = []
  let cluster = start
  for (let left = count; left > 0 && cluster >= FIRST_CLUSTER && cluster <= last;) {
    const most = Math.min(left, last - cluster + 1, MAX_READING_BYTES / 4)
    const [table = Buffer.alloc(0)] = yield [{ offset: tableOffset + cluster * 4, bytes: most * 4 }]
    let length = 1
    while (length < most && table.readUInt32LE(length * 4 - 4) === cluster + length) length += 1
    const offset = heapOffset + (cluster - FIRST_CLUSTER) * clusterBytes
    runs.push({ offset, bytes: length * clusterBytes })
    left -= length
    cluster = table.readUInt32LE(length * 4 - 4)
  }
  return runs
}

const ext: MapTool = { tool: 'partclone.ext4', witness: reading(walkExt), judge: judgeExt }

const KINDS: { readonly [Type in string]?: MapTool } = {
  ext2: ext,
  ext3: ext,
  ext4: ext,
  xfs: {
    tool: 'partclone.xfs',
    witness: reading(walkXfs),
    judge: () => null,
    // What is still in the log is not in the trees of free blocks.
    check: {
      argv: ['xfs_logprint', '-t'],
      judge: ({ stdout }) => (stdout.includes('state: <CLEAN>') ? accept([]) : refuse(UNCLEAN)),
    },
  },
  btrfs: {
    tool: 'partclone.btrfs',
    witness: reading(walkBtrfs),
    judge: judgeBtrfs,
    check: {
      argv: ['btrfs', 'inspect-internal', 'dump-tree', '-t', 'chunk'],
      judge: ({ stdout }) => parseChunks(stdout),
    },
    more: [
      { offset: 64 * MIB, bytes: 64 * KIB },
      { offset: 256 * GIB, bytes: 64 * KIB },
    ],
  },
  vfat: { tool: 'partclone.fat', witness: reading(walkFat), judge: judgeFat },
  exfat: { tool: 'partclone.exfat', witness: reading(walkExfat), judge: judgeExfat },
  ntfs: {
    tool: 'partclone.ntfs',
    witness: { by: 'tool', argv: ['ntfsresize', '--info', '--bad-sectors'], judge: judgeNtfs },
    judge: () => null,
    // Windows may be hibernated, or have left something in its log.
    check: {
      argv: ['ntfs-3g.probe', '--readwrite'],
      judge: ({ exitCode }) => (exitCode === 0 ? accept([]) : refuse(UNCLEAN)),
    },
  },
}

const NAMES: { readonly [Type in string]?: string } = {
  LVM2_member: 'an LVM physical volume',
  crypto_LUKS: 'an encrypted volume',
  linux_raid_member: 'a member of a RAID',
  zfs_member: 'a member of a ZFS pool',
  swsuspend: 'a suspended system',
  DM_verity_hash: 'the hashes of dm-verity',
}

/** Their boot sectors end as a partition table does; some (mformat's) have one entry for themselves, from sector 0 on. */
const BOOT_SECTORS = ['vfat', 'exfat', 'ntfs']
const isTable = (type: string, table: string | null, first: Buffer) =>
  BOOT_SECTORS.includes(type)
    ? hasDosStates(first) &&
      readDosEntries(first).some((entry) => entry.sectors !== 0 && entry.first !== 0)
    : table !== null

interface LookedPart {
  readonly contents: Pick<Contents, 'type' | 'table'>
  readonly role: AreaRole
  readonly first: Buffer
  readonly bytes: number
  readonly others: readonly Neighbour[]
}

/**
 * A map is used only where everything is understood: one file system, on a partition for one, and
 * nothing beside or behind it.
 */
export function decideReading(part: LookedPart): PartitionReading {
  const { contents, role, first, bytes } = part
  const { type, table } = contents
  if (type === null) return whole('an unknown file system')
  // Which of the two is older is unknown.
  if (isTable(type, table, first)) return whole('it also has a partition table')
  const isSwap = type === 'swap'
  const kind = KINDS[type]
  if (kind === undefined && !isSwap) {
    return whole(NAMES[type] ?? `no list of used blocks for ${type}`)
  }
  if (role !== 'disk' && role !== (isSwap ? 'swap' : 'data')) return whole(OTHER_TYPE)
  return kind === undefined ? readSwap(first, bytes) : decideMap(part, type, kind)
}

function decideMap(
  { first, bytes, others }: LookedPart,
  type: string,
  { judge, tool, check, witness, more = [] }: MapTool,
): PartitionReading {
  if (first.length < SUPERBLOCK_BYTES) return whole('it is very small')
  const problem = judge(first)
  if (problem !== null) return whole(problem)
  const ownBytes = readFileSystemBytes(type, first)
  if (ownBytes === null || ownBytes > bytes) return whole('it is larger than its partition')
  if (isHashedBeside({ ownBytes, bytes }, others)) return whole(HASHED)
  const bounds = findBounds([FIRST, ...more], ownBytes, bytes)
  return { by: 'map', tool, witness, ...bounds, ...(check === undefined ? {} : { check }) }
}

const OTHER_TYPE = 'its partition type is for something else'
const HASHED = 'another partition may hold its hashes (dm-verity)'
/** Direct reads' alignment for every sector size. */
const ALIGNMENT = 4 * KIB

/** A little behind the file system is always read; hashes of all its blocks take more. */
function findBounds(ranges: readonly Range[], ownBytes: number, bytes: number): Bounded {
  const isLittle = (bytes - ownBytes) * MAX_HASHED_SHARE < ownBytes
  const near = isLittle ? bytes : Math.min(bytes, Math.ceil(ownBytes / ALIGNMENT) * ALIGNMENT)
  const always = [...ranges, { offset: ownBytes, bytes: near - ownBytes }]
    .map(({ offset, bytes: length }) => ({ offset, bytes: Math.min(length, bytes - offset) }))
    .filter((range) => range.bytes > 0)
    .toSorted((one, two) => one.offset - two.offset)
  const behind = near < bytes ? { offset: near, bytes: bytes - near } : null
  return { always, ownBytes, behind }
}

/** Only the page with the header, which ends with a signature, counts once swap is off. */
function readSwap(first: Buffer, bytes: number): PartitionReading {
  const page = PAGES.find((size) => first.toString('latin1', size - 10, size) === 'SWAPSPACE2')
  if (page === undefined || page > bytes) return whole('its format is too old')
  const ownBytes = (first.readUInt32LE(1028) + 1) * page
  if (first.readUInt32LE(1024) !== 1 || ownBytes > bytes) return whole('its format is too old')
  return { by: 'ranges', ...findBounds([{ offset: 0, bytes: page }], ownBytes, bytes) }
}

const PAGES = [4, 8, 16, 32, 64].map((size) => size * KIB)

const UNCLEAN = 'it was not unmounted cleanly'

/** With a journal to replay, the bitmaps are outdated. */
function judgeExt(first: Buffer): string | null {
  const [state, incompatible] = [first.readUInt16LE(1024 + 0x3a), first.readUInt32LE(1024 + 0x60)]
  const isClean = (state & 3) === 1 && (incompatible & 4) === 0
  return isClean ? null : UNCLEAN
}

/** What only its log holds is in no extent tree. */
function judgeBtrfs(first: Buffer): string | null {
  const at = 64 * KIB
  if (first.readBigUInt64LE(at + 0x60) !== 0n) return UNCLEAN
  return first.readBigUInt64LE(at + 0x88) === 1n ? null : 'it spans several devices'
}

/** partclone reads its entries of 12 bits as if they had 16. */
const FAT12 = 'FAT12 has no reliable map of used blocks'

/** The bytes in which Linux notes a mount, FAT32's and the others'. */
function judgeFat(first: Buffer): string | null {
  if (readFatFacts(first).bits === 12) return FAT12
  const note = first.readUInt16LE(0x16) === 0 ? first[0x41] : first[0x25]
  return ((note ?? 0) & 3) === 0 ? null : UNCLEAN
}

function judgeExfat(first: Buffer): string | null {
  return (first.readUInt16LE(106) & 2) === 0 ? null : UNCLEAN
}
