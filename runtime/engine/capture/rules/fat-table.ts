/** FAT16 and FAT32: which clusters its table says are used. */
import {
  createUnitCheck,
  isCovered,
  listPieces,
  tooFree,
  unreadable,
  type SecondReading,
  type Looked,
} from './second-reading.ts'

/** With fewer clusters entries have 12 bits. */
const MIN_FAT16_CLUSTERS = 4085
/** Clusters are counted from 2. */
const FIRST_CLUSTER = 2
const FAT32_BITS = 0x0fff_ffff

export function readFatFacts(first: Buffer) {
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
