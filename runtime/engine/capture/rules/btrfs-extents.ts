/** btrfs: which blocks its extent tree, the one record of all that is allocated, says are used. */
import { findFirst, type Range } from '#engine/disk/rules/extents.ts'
import type { Chunk } from './mirrors.ts'
import type { RangeList } from './range-list.ts'
import {
  isCovered,
  tooFree,
  unreadable,
  MAX_READING_BYTES,
  type SecondReading,
  type Looked,
} from './second-reading.ts'

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
