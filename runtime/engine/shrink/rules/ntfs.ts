/** Reads the records of an NTFS as they lie on a disk, as far as a comparison of two of them needs it. */

export interface NtfsLayout {
  readonly clusterBytes: number
  readonly recordBytes: number
  /** Of a block of a folder's index. */
  readonly indexBytes: number
  /** In clusters. */
  readonly mftAt: number
  readonly sectorBytes: number
}

/** Throws where it cannot be read. */
export function parseNtfsLayout(boot: Buffer): NtfsLayout {
  const sectorBytes = boot.readUInt16LE(0x0b)
  const perCluster = boot.readUInt8(0x0d)
  const clusterSectors = perCluster > 0x80 ? 2 ** (256 - perCluster) : perCluster
  const clusterBytes = sectorBytes * clusterSectors
  const inBytes = (stored: number) => (stored > 0 ? stored * clusterBytes : 2 ** -stored)
  const [recordBytes, indexBytes] = [inBytes(boot.readInt8(0x40)), inBytes(boot.readInt8(0x44))]
  const sizes = [recordBytes, indexBytes, sectorBytes]
  const isSound = isPower(clusterBytes, 2 * 2 ** 20) && sizes.every((size) => isPower(size, 65_536))
  if (!isSound) throw new RangeError()
  const mftAt = Number(boot.readBigUInt64LE(0x30))
  return { clusterBytes, recordBytes, indexBytes, sectorBytes, mftAt }
}

const isPower = (bytes: number, most: number) =>
  bytes >= 512 && bytes <= most && Number.isInteger(Math.log2(bytes))

/** In clusters; `at` null: a hole. */
export interface Run {
  readonly at: number | null
  readonly count: number
}

interface Resident {
  readonly kind: 'resident'
  readonly value: Buffer
}
interface Apart {
  readonly kind: 'apart'
  /** Places and sizes that no move changes. */
  readonly facts: Buffer
  /** Data, as its size says; only in the first part of an attribute. */
  readonly dataBytes: number
  readonly runs: readonly Run[]
}

export type Attribute = (Resident | Apart) & {
  readonly type: number
  /** Type, name, flags and number: equal in both. */
  readonly head: string
  readonly hasName: boolean
}

export const ATTRIBUTE = {
  list: 0x20,
  fileName: 0x30,
  volumeInformation: 0x70,
  data: 0x80,
  indexRoot: 0x90,
  indexBlocks: 0xa0,
} as const

export interface NtfsRecord {
  readonly isUsed: boolean
  /** Sequence number, links, flags, the record that it belongs to. */
  readonly head: Buffer
  readonly attributes: readonly Attribute[]
}

const STRIDE = 512

/** Null: an empty one that was never used. Throws where it cannot be read. */
export function parseNtfsRecord(stored: Buffer): NtfsRecord | null {
  if (stored.toString('latin1', 0, 4) !== 'FILE') return null
  const record = undoFixups(stored)
  const isUsed = (record.readUInt16LE(22) & 1) !== 0
  const head = Buffer.concat([
    record.subarray(16, 20),
    record.subarray(22, 24),
    record.subarray(32, 40),
  ])
  return { isUsed, head, attributes: isUsed ? parseAttributes(record) : [] }
}

/** The last two bytes of each stride, which lie elsewhere while it is stored. */
function undoFixups(stored: Buffer): Buffer {
  const record = Buffer.from(stored)
  const [array, count] = [record.readUInt16LE(4), record.readUInt16LE(6)]
  if (count !== record.length / STRIDE + 1) throw new RangeError()
  for (let index = 1; index < count; index += 1) {
    const end = index * STRIDE - 2
    if (record.readUInt16LE(end) !== record.readUInt16LE(array)) throw new RangeError()
    record.copy(record, end, array + index * 2, array + index * 2 + 2)
  }
  record.fill(0, array, array + count * 2)
  return record
}

/** In an index entry of a name: how large its file is. */
const SIZES = { from: 0x38, to: 0x48 } as const
/** An entry has the name behind these bytes. */
const ENTRY_BYTES = 16

/** A copy of a name attribute without the size of its file. */
export function clearFileSizes(value: Buffer): Buffer {
  const copy = Buffer.from(value)
  return copy.fill(0, SIZES.from - ENTRY_BYTES, SIZES.to - ENTRY_BYTES)
}

/**
 * Of the root folder, with sizes of the `changed` files of the file system itself cleared: a block of
 * its index, or what begins it in its record (`isRoot`).
 */
export function clearIndexSizes(
  stored: Buffer,
  changed: readonly number[],
  isRoot: boolean,
): Buffer {
  if (!isRoot && stored.toString('latin1', 0, 4) !== 'INDX') return stored
  const index = isRoot ? Buffer.from(stored) : undoFixups(stored)
  const header = isRoot ? 16 : 24
  const end = header + index.readUInt32LE(header + 4)
  for (let at = header + index.readUInt32LE(header); at + ENTRY_BYTES <= end;) {
    const length = index.readUInt16LE(at + 8)
    if (length < ENTRY_BYTES || at + length > index.length) throw new RangeError()
    const isName = index.readUInt16LE(at + 10) >= SIZES.to - ENTRY_BYTES
    if (isName && changed.includes(index.readUIntLE(at, 6))) {
      index.fill(0, at + SIZES.from, at + SIZES.to)
    }
    at += length
  }
  return index
}

const END = 0xffff_ffff

function parseAttributes(record: Buffer): readonly Attribute[] {
  const found: Attribute[] = []
  for (let at = record.readUInt16LE(0x14); record.readUInt32LE(at) !== END;) {
    const length = record.readUInt32LE(at + 4)
    if (length < 24 || at + length > record.length) throw new RangeError()
    found.push(parseAttribute(record.subarray(at, at + length)))
    at += length
  }
  return found
}

function parseAttribute(bytes: Buffer): Attribute {
  const type = bytes.readUInt32LE(0)
  const nameBytes = bytes.readUInt8(9) * 2
  const nameAt = bytes.readUInt16LE(10)
  const name = bytes.toString('hex', nameAt, nameAt + nameBytes)
  const isApart = bytes.readUInt8(8) !== 0
  const flags = bytes.readUInt16LE(12)
  const head = `${type} ${name} ${flags} ${bytes.readUInt16LE(14)} ${isApart}`
  const common = { type, head, hasName: nameBytes > 0 }
  if (!isApart) {
    const valueAt = bytes.readUInt16LE(20)
    const end = valueAt + bytes.readUInt32LE(16)
    if (end > bytes.length) throw new RangeError()
    return { ...common, kind: 'resident', value: bytes.subarray(valueAt, end) }
  }
  const isFirst = bytes.readBigUInt64LE(16) === 0n
  // From the first number on: those of clusters, and sizes; not where the runs begin.
  const facts = Buffer.concat([
    bytes.subarray(16, 32),
    bytes.subarray(34, 36),
    bytes.subarray(40, 64),
  ])
  const dataBytes = isFirst ? Number(bytes.readBigUInt64LE(48)) : 0
  return { ...common, kind: 'apart', facts, dataBytes, runs: parseRuns(bytes) }
}

function parseRuns(bytes: Buffer): readonly Run[] {
  const runs: Run[] = []
  let cluster = 0
  for (let at = bytes.readUInt16LE(32); ;) {
    const sizes = bytes.readUInt8(at)
    if (sizes === 0) return runs
    const [countBytes, moveBytes] = [sizes & 15, sizes >> 4]
    if (countBytes === 0 || countBytes > 6 || moveBytes > 6) throw new RangeError()
    const count = bytes.readUIntLE(at + 1, countBytes)
    if (moveBytes > 0) cluster += bytes.readIntLE(at + 1 + countBytes, moveBytes)
    runs.push({ at: moveBytes === 0 ? null : cluster, count })
    at += 1 + countBytes + moveBytes
  }
}
