/** ext2, ext3 and ext4: how many blocks the descriptors of its block groups say are free. */
import type { Range } from '#engine/disk/rules/extents.ts'
import {
  isAtMostFree,
  listPieces,
  tooFree,
  unreadable,
  type SecondReading,
  type Looked,
} from './second-reading.ts'

/** Offsets in a superblock, which begins 1024 bytes into the file system. */
const SUPER = 1024
const HAS_BACKUPS_OF_TWO = 0x200
const SPARSE_SUPER = 0x1
const META_GROUPS = 0x10
const LONG = 0x80

function readFacts(first: Buffer) {
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

type ExtFacts = ReturnType<typeof readFacts>

const isSound = (facts: ExtFacts, bytes: number) =>
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
  const facts = readFacts(first)
  if (!isSound(facts, bytes)) return unreadable('its superblock')
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
