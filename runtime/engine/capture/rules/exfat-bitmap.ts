/** exFAT: which clusters its own bitmap says are used. */
import type { Range } from '#engine/disk/rules/extents.ts'
import {
  createUnitCheck,
  isCovered,
  listPieces,
  tooFree,
  unreadable,
  MAX_READING_BYTES,
  type SecondReading,
  type Looked,
} from './second-reading.ts'

const FIRST_CLUSTER = 2
const ENTRY_BYTES = 32
const BITMAP_ENTRY = 0x81
/** The bitmap's entry is at the beginning of the root folder; the search ends here. */
const MAX_ROOT_CLUSTERS = 64

const readFacts = (first: Buffer) => {
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

type ExfatFacts = ReturnType<typeof readFacts>

const isSound = (facts: ExfatFacts, bytes: number) =>
  facts.tables === 1 &&
  facts.sectorBytes >= 512 &&
  facts.clusters > 0 &&
  (facts.clusters + FIRST_CLUSTER) * 4 <= facts.tableBytes &&
  facts.tableOffset + facts.tableBytes <= facts.heapOffset &&
  facts.clusterBytes <= 2 ** 25 &&
  facts.heapOffset + facts.clusters * facts.clusterBytes <= bytes

export function* walkExfat({ first, bytes, used }: Looked): SecondReading {
  const facts = readFacts(first)
  if (!isSound(facts, bytes)) return unreadable('its boot sector')
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
