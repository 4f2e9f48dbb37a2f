/** A second look at which blocks of a partition are used: a map that calls more of them free is not believed; of btrfs with its mirrors. */
import { findFirst, type Range } from '#engine/disk/rules/extents.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { addUnion, countWithin, createRangeList, listRanges, type RangeList } from './range-list.ts'

export interface Looked {
  /** The partition's first bytes, with all superblocks. */
  readonly first: Buffer
  readonly bytes: number
  readonly used: RangeList
  /** Where btrfs keeps its blocks; none of other file systems. */
  readonly chunks: readonly Chunk[]
}

/**
 * Asks for ranges of at most `MAX_READING_BYTES` and gets their bytes in the same order. Ends with why
 * the map is wrong, or null.
 */
export type SecondReading = Generator<readonly Range[], string | null, readonly Buffer[]>

export const MAX_READING_BYTES: number = 4 * 1024 * 1024

/** The only direction that counts: a map that calls too little free only costs time. */
export const tooFree = (witness: string): string => `its map calls blocks free that ${witness} uses`
export const unreadable = (witness: string): string =>
  `its map of used blocks cannot be checked, because ${witness} is not as expected`

export const isCovered = (used: RangeList, range: Range): boolean =>
  countWithin(used, range) === range.bytes

export const isAtMostFree = (used: RangeList, range: Range, freeBytes: number): boolean =>
  range.bytes - countWithin(used, range) <= freeBytes

/** Units come in ascending order; the map is asked once for each run. */
export function createUnitCheck(
  used: RangeList,
  { offset, unitBytes }: { readonly offset: number; readonly unitBytes: number },
) {
  let [first, end] = [0, 0]
  let isRight = true
  const finish = () => {
    const bytes = (end - first) * unitBytes
    isRight &&= bytes === 0 || isCovered(used, { offset: offset + first * unitBytes, bytes })
  }
  return {
    take(unit: number) {
      if (unit !== end) {
        finish()
        first = unit
      }
      end = unit + 1
    },
    /** Call it once, at the end. */
    end() {
      finish()
      return isRight
    },
  }
}

export function* listPieces({ offset, bytes }: Range): Generator<Range> {
  for (let at = 0; at < bytes; at += MAX_READING_BYTES) {
    yield { offset: offset + at, bytes: Math.min(MAX_READING_BYTES, bytes - at) }
  }
}

/** btrfs's own addresses, and the one or two places of the partition that hold them. */
export interface Chunk {
  readonly logical: number
  readonly bytes: number
  readonly offsets: readonly [number] | readonly [number, number]
}

const CHUNK =
  /\bCHUNK_ITEM (\d{1,16})\) .*\n\t\tlength (\d{1,16}) owner \d+ stripe_len \d+ type ([\w|]{1,64})((?:\n\t\t.*)*)/g
const STRIPE = /\bstripe \d+ devid \d+ offset (\d{1,16})\b/g
const PROFILES = /\b(?:RAID\w+|mixed)\b/

/** `btrfs inspect-internal dump-tree -t chunk`. */
export function parseChunks(text: string): Result<readonly Chunk[], string> {
  const chunks: Chunk[] = []
  for (const [, logical = '', length = '', type = '', more = ''] of text.matchAll(CHUNK)) {
    const offsets = PROFILES.test(type) ? null : readOffsets(more)
    if (offsets === null) return refuse('it spreads its data over devices')
    chunks.push({ logical: Number(logical), bytes: Number(length), offsets })
  }
  return chunks.length === 0 ? refuse('its chunks are not known') : accept(chunks)
}

function readOffsets(stripes: string): Chunk['offsets'] | null {
  const offsets = [...stripes.matchAll(STRIPE)].map(([, offset]) => Number(offset))
  const [one, two, ...others] = offsets
  if (one === undefined || others.length > 0) return null
  return two === undefined ? [one] : [one, two]
}

/** What is used of one copy is used of the other. */
export function addMirrors(
  used: RangeList,
  chunks: readonly Pick<Chunk, 'bytes' | 'offsets'>[],
): RangeList {
  const copies = chunks.flatMap(({ bytes, offsets: [one, two] }) =>
    two === undefined
      ? []
      : [
          ...shift(used, { offset: one, bytes }, two - one),
          ...shift(used, { offset: two, bytes }, one - two),
        ],
  )
  const all = createRangeList()
  addUnion(all, used, listRanges(copies.toSorted((a, b) => a.offset - b.offset)), 0)
  return all
}

function shift(used: RangeList, { offset, bytes }: Range, distance: number): readonly Range[] {
  const moved: Range[] = []
  const isBehind = (range: Range) => range.offset + range.bytes > offset
  const first = findFirst(used.count, (index) => isBehind(used.at(index)))
  for (let index = first; index < used.count; index += 1) {
    const range = used.at(index)
    const from = Math.max(range.offset, offset)
    const to = Math.min(range.offset + range.bytes, offset + bytes)
    if (from >= to) break
    moved.push({ offset: from + distance, bytes: to - from })
  }
  return moved
}

const SUPER = 64 * 1024
const NODE_HEAD_BYTES = 101
const ITEM_BYTES = 25
const POINTER_BYTES = 33
const MAX_LEVEL = 7

const EXTENT_TREE = 2
const ROOT_ITEM = 132
const EXTENT_ITEM = 168
const METADATA_ITEM = 169
const ROOT_AT = { address: 176, level: 238, bytes: 239 } as const

/** Numbers up to 2^53; none of a disk is larger. */
const readNumber = (bytes: Buffer, at: number) =>
  bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32

const readFacts = (first: Buffer) => ({
  root: { address: readNumber(first, SUPER + 0x50), level: first.readUInt8(SUPER + 0xc6) },
  nodeBytes: first.readUInt32LE(SUPER + 0x94),
})

interface TreeBlock {
  readonly address: number
  readonly level: number
}

interface Key {
  readonly id: number
  readonly type: number
  readonly offset: number
}

export function* walkBtrfs({ first, bytes, used, chunks }: Looked): SecondReading {
  const { root, nodeBytes } = readFacts(first)
  if (!isSound(root, nodeBytes)) return unreadable('its superblock')
  const geometry = { nodeBytes, locate: createLocator(chunks) }
  const tree = yield* findExtentTree(root, geometry)
  if (tree === null) return unreadable(TREE)
  const waiting: TreeBlock[] = [tree]
  // No more blocks than a disk has room for: they could name each other in a circle.
  let left = Math.ceil(bytes / nodeBytes)
  while (waiting.length > 0) {
    const treeBlocks = waiting.splice(-Math.floor(MAX_BATCH_BYTES / nodeBytes))
    left -= treeBlocks.length
    const nodes = left < 0 ? null : yield* readNodes(treeBlocks, geometry)
    if (nodes === null) return unreadable(TREE)
    for (const { node, level } of nodes) {
      if (level > 0) waiting.push(...listChildren(node, level))
      else if (!isLeafCovered(used, node, geometry)) return tooFree(TREE)
    }
  }
  return null
}

const isSound = ({ level }: TreeBlock, nodeBytes: number) =>
  level <= MAX_LEVEL && nodeBytes >= 4096 && nodeBytes <= 65_536

const MAX_BATCH_BYTES = MAX_READING_BYTES / 4

interface Geometry {
  readonly nodeBytes: number
  readonly locate: Locate
}

interface ReadNode {
  readonly node: Buffer
  readonly level: number
}

type TreeReading<Found> = Generator<readonly Range[], Found, readonly Buffer[]>

/** Null where one of them is invalid. */
function* readNodes(
  treeBlocks: readonly TreeBlock[],
  { nodeBytes, locate }: Geometry,
): TreeReading<readonly ReadNode[] | null> {
  const ranges = treeBlocks.flatMap(({ address }) => locate(address, nodeBytes)?.slice(0, 1) ?? [])
  if (ranges.length < treeBlocks.length) return null
  const nodes = yield ranges
  const read = nodes.flatMap((node, index) => {
    const treeBlock = treeBlocks[index]
    return treeBlock !== undefined && isNode(node, treeBlock)
      ? [{ node, level: treeBlock.level }]
      : []
  })
  return read.length < treeBlocks.length ? null : read
}

function isLeafCovered(used: RangeList, leaf: Buffer, { nodeBytes, locate }: Geometry): boolean {
  for (const { id, type, offset } of listItems(leaf)) {
    if (type !== EXTENT_ITEM && type !== METADATA_ITEM) continue
    const treeBlocks = locate(id, type === EXTENT_ITEM ? offset : nodeBytes)
    if (treeBlocks?.every((treeBlock) => isCovered(used, treeBlock)) !== true) return false
  }
  return true
}

const TREE = 'its extent tree'

/** Null: no place of the partition holds these addresses. */
type Locate = (address: number, bytes: number) => readonly Range[] | null

function createLocator(given: readonly Chunk[]): Locate {
  const chunks = given.toSorted((one, other) => one.logical - other.logical)
  return (address, bytes) => {
    const isReached = (index: number) => (chunks[index]?.logical ?? 0) > address
    const chunk = chunks[findFirst(chunks.length, isReached) - 1]
    if (chunk === undefined || address + bytes > chunk.logical + chunk.bytes) return null
    return chunk.offsets.map((offset) => ({ offset: offset + address - chunk.logical, bytes }))
  }
}

function isNode(node: Buffer, { address, level }: TreeBlock): boolean {
  const itemBytes = level === 0 ? ITEM_BYTES : POINTER_BYTES
  return (
    readNumber(node, 0x30) === address &&
    node.readUInt8(0x64) === level &&
    NODE_HEAD_BYTES + node.readUInt32LE(0x60) * itemBytes <= node.length
  )
}

function readKey(node: Buffer, at: number): Key {
  return {
    id: readNumber(node, at),
    type: node.readUInt8(at + 8),
    offset: readNumber(node, at + 9),
  }
}

function* listItems(leaf: Buffer): Generator<Key & { readonly data: Buffer }> {
  for (let index = 0; index < leaf.readUInt32LE(0x60); index += 1) {
    const at = NODE_HEAD_BYTES + index * ITEM_BYTES
    const start = NODE_HEAD_BYTES + leaf.readUInt32LE(at + 17)
    const data = leaf.subarray(start, start + leaf.readUInt32LE(at + 21))
    yield { ...readKey(leaf, at), data }
  }
}

const listChildren = (node: Buffer, level: number) =>
  Array.from({ length: node.readUInt32LE(0x60) }, (_, index) => {
    const at = NODE_HEAD_BYTES + index * POINTER_BYTES
    return { key: readKey(node, at), address: readNumber(node, at + 17), level: level - 1 }
  })

const isBefore = ({ key }: { readonly key: Key }) =>
  key.id < EXTENT_TREE || (key.id === EXTENT_TREE && key.type <= ROOT_ITEM)

/** Null: the tree of roots does not name it. */
function* findExtentTree(root: TreeBlock, geometry: Geometry): TreeReading<TreeBlock | null> {
  for (let treeBlock: TreeBlock | undefined = root; treeBlock !== undefined;) {
    const read: readonly ReadNode[] | null = yield* readNodes([treeBlock], geometry)
    const found: ReadNode | undefined = read?.[0]
    if (found === undefined) return null
    if (found.level === 0) return readRoot(found.node)
    treeBlock = listChildren(found.node, found.level).findLast(isBefore)
  }
  return null
}

function readRoot(leaf: Buffer): TreeBlock | null {
  for (const { id, type, data } of listItems(leaf)) {
    if (id !== EXTENT_TREE || type !== ROOT_ITEM || data.length < ROOT_AT.bytes) continue
    const level = data.readUInt8(ROOT_AT.level)
    return level > MAX_LEVEL ? null : { address: readNumber(data, ROOT_AT.address), level }
  }
  return null
}
