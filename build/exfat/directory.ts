/** The entries of an exFAT directory: names, sizes and places of files. */
import { capitalOf } from './upcase.ts'

const ENTRY_BYTES = 32
const NAME_UNITS_PER_ENTRY = 15
const MAX_NAME_UNITS = 255
const KIND = {
  bitmap: 0x81,
  upcase: 0x82,
  label: 0x83,
  file: 0x85,
  stream: 0xc0,
  name: 0xc1,
} as const
/** Clusters can be allocated, and follow each other without a chain in the FAT. */
const CONTIGUOUS = 0b11
const ARCHIVE = 0x20
const UTC_OFFSET = 0x80

interface FileEntry {
  /** At most 255 UTF-16 units, none of them `" * / : < > ? \ |` or a control character. */
  readonly name: string
  readonly bytes: number
  /** 0 for a file without content. */
  readonly firstCluster: number
  readonly time: Date
}

export function renderLabel(label: string): Buffer {
  const entry = startEntry(KIND.label)
  entry.writeUInt8(label.length, 1)
  entry.write(label, 2, 'utf16le')
  return entry
}

export function renderBitmapEntry(cluster: number, bytes: number): Buffer {
  const entry = startEntry(KIND.bitmap)
  entry.writeUInt32LE(cluster, 20)
  entry.writeBigUInt64LE(BigInt(bytes), 24)
  return entry
}

export function renderUpcaseEntry(cluster: number, bytes: number, checksum: number): Buffer {
  const entry = startEntry(KIND.upcase)
  entry.writeUInt32LE(checksum, 4)
  entry.writeUInt32LE(cluster, 20)
  entry.writeBigUInt64LE(BigInt(bytes), 24)
  return entry
}

/**
 * Renders a file entry, a stream entry and as many name entries as the name requires, with their
 * checksum. Throws when exFAT allows no such name.
 */
export function renderFileEntries({ name, bytes, firstCluster, time }: FileEntry): Buffer {
  if (name === '' || name.length > MAX_NAME_UNITS || /["*/:<>?\\|\p{Cc}]/u.test(name)) {
    throw new Error(`${JSON.stringify(name)} cannot be a file's name on exFAT`)
  }
  const names = Math.ceil(name.length / NAME_UNITS_PER_ENTRY)
  const file = startEntry(KIND.file)
  file.writeUInt8(1 + names, 1)
  file.writeUInt16LE(ARCHIVE, 4)
  for (const at of [8, 12, 16]) file.writeUInt32LE(dosTime(time), at)
  for (const at of [22, 23, 24]) file.writeUInt8(UTC_OFFSET, at)
  const stream = startEntry(KIND.stream)
  stream.writeUInt8(bytes === 0 ? 1 : CONTIGUOUS, 1)
  stream.writeUInt8(name.length, 3)
  stream.writeUInt16LE(hashName(name), 4)
  stream.writeBigUInt64LE(BigInt(bytes), 8)
  stream.writeUInt32LE(firstCluster, 20)
  stream.writeBigUInt64LE(BigInt(bytes), 24)
  const set = Buffer.concat([file, stream, ...renderNames(name, names)])
  set.writeUInt16LE(sumEntries(set), 2)
  return set
}

const startEntry = (kind: number) => {
  const entry = Buffer.alloc(ENTRY_BYTES)
  entry.writeUInt8(kind)
  return entry
}

const renderNames = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => {
    const entry = startEntry(KIND.name)
    const from = at * NAME_UNITS_PER_ENTRY
    entry.write(name.slice(from, from + NAME_UNITS_PER_ENTRY), 2, 'utf16le')
    return entry
  })

const addToShortSum = (sum: number, byte: number) => (((sum << 15) | (sum >>> 1)) + byte) & 0xffff

/** The two bytes of the sum itself are skipped. */
const sumEntries = (set: Buffer) =>
  set.reduce((sum, byte, at) => (at === 2 || at === 3 ? sum : addToShortSum(sum, byte)), 0)

function hashName(name: string): number {
  const capitals = Buffer.alloc(name.length * 2)
  for (let at = 0; at < name.length; at += 1) {
    capitals.writeUInt16LE(capitalOf(name.charCodeAt(at)), at * 2)
  }
  return capitals.reduce(addToShortSum, 0)
}

/** DOS time: in steps of two seconds, since 1980, here always in UTC. */
function dosTime(time: Date): number {
  const days =
    ((Math.max(1980, time.getUTCFullYear()) - 1980) << 9) |
    ((time.getUTCMonth() + 1) << 5) |
    time.getUTCDate()
  const seconds =
    (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1)
  return ((days << 16) | seconds) >>> 0
}
