/** XFS: how many blocks its allocation groups and its superblock say are free. */
import {
  isAtMostFree,
  tooFree,
  unreadable,
  type SecondReading,
  type Looked,
} from './second-reading.ts'

const MAX_AT_ONCE = 64
/** The superblock's count is exact only where it is counted lazily, as on all but very old ones. */
const LAZY_COUNT = 2
const AGF_MAGIC = 0x5841_4746

/** Big-endian. */
const readFacts = (first: Buffer) => ({
  blockBytes: first.readUInt32BE(4),
  blocks: Number(first.readBigUInt64BE(8)),
  groupBlocks: first.readUInt32BE(84),
  groups: first.readUInt32BE(88),
  sectorBytes: first.readUInt16BE(102),
  freeBlocks: Number(first.readBigUInt64BE(144)),
  isLazy: (first.readUInt32BE(200) & LAZY_COUNT) !== 0,
})

type XfsFacts = ReturnType<typeof readFacts>

const isPower = (size: number) => size >= 512 && size <= 65_536 && (size & (size - 1)) === 0

const isSound = (
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
  const facts = readFacts(first)
  if (!isSound(facts, bytes)) return unreadable('its superblock')
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
