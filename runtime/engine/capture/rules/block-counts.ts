/** How many blocks ext, XFS and exFAT themselves say are used. */
import type { Range } from '#engine/disk/rules/extents.ts'
import {
  isAtMostFree,
  listPieces,
  tooFree,
  unreadable,
  type SecondReading,
  type Looked,
  createUnitCheck,
  isCovered,
  MAX_READING_BYTES,
} from './second-reading.ts'

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

/** exFAT: which clusters its own bitmap says are used. */
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
