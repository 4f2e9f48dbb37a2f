/** Compares two NTFS, one of them shrunk: every record of the file table with all its attributes and streams. */
import { isSameContent, type Piece, type ReadBytes } from './content-comparison.ts'
import {
  ATTRIBUTE,
  type Attribute,
  clearFileSizes,
  clearIndexSizes,
  type NtfsLayout,
  type NtfsRecord,
  parseNtfsLayout,
  parseNtfsRecord,
  type Run,
} from './rules/ntfs.ts'

/** Files of the file system itself whose content a new size changes: their data are not compared. */
const OWN = {
  mft: 0,
  mirror: 1,
  log: 2,
  volume: 3,
  root: 5,
  bitmap: 6,
  boot: 7,
  badClusters: 8,
} as const
const CHANGED: readonly number[] = [
  OWN.mft,
  OWN.mirror,
  OWN.log,
  OWN.bitmap,
  OWN.boot,
  OWN.badClusters,
]
/** Of the boot file, what no size and no place changes: hidden sectors, sizes, places and a sum are between. */
const BOOT_BYTES = 8192
const BOOT_KEPT: readonly (readonly [number, number])[] = [
  [0, 0x1c],
  [0x20, 0x28],
  [0x40, 0x50],
  [0x54, BOOT_BYTES],
]

/** What differs first, as a clause; null: nothing. */
export async function compareNtfs(
  readBefore: ReadBytes,
  readAfter: ReadBytes,
  signal: AbortSignal,
): Promise<string | null> {
  const before = await openNtfs(readBefore)
  const after = await openNtfs(readAfter)
  const isSameBoot = BOOT_KEPT.every(([from, to]) =>
    before.boot.subarray(from, to).equals(after.boot.subarray(from, to)),
  )
  if (!isSameBoot) return 'its boot sector'
  if (before.records !== after.records) return 'the number of files'
  for (let number = 0; number < before.records; number += 1) {
    signal.throwIfAborted()
    const refusal = await compareRecords(before, after, number)
    if (refusal !== null) return `${refusal} of record ${number}`
  }
  return null
}

type Ntfs = Awaited<ReturnType<typeof openNtfs>>

async function compareRecords(before: Ntfs, after: Ntfs, number: number): Promise<string | null> {
  const [one, two] = [await before.record(number), await after.record(number)]
  const isInUse = isUsed(one)
  if (isInUse !== isUsed(two)) return 'the state'
  if (!isInUse || one === null || two === null) return null
  if (!one.head.equals(two.head)) return 'the header'
  const heads = [one, two].map(({ attributes }) => attributes.map(({ head }) => head).join('\n'))
  if (heads[0] !== heads[1]) return 'the attributes'
  return await compareAttributes({ before, after, number }, one.attributes, two.attributes)
}

const isUsed = (record: NtfsRecord | null) => record?.isUsed ?? false

async function compareAttributes(
  sides: Sides,
  ones: readonly Attribute[],
  twos: readonly Attribute[],
): Promise<string | null> {
  for (const [index, one] of ones.entries()) {
    const two = twos[index]
    const isData = one.type === ATTRIBUTE.data
    if (isData && CHANGED.includes(sides.number)) continue
    if (two === undefined || !(await isSame(sides, one, two))) {
      return isData ? 'a stream' : 'an attribute'
    }
  }
  return null
}

interface Sides {
  readonly before: Ntfs
  readonly after: Ntfs
  readonly number: number
}

async function isSame(sides: Sides, one: Attribute, two: Attribute): Promise<boolean> {
  const { before, after, number } = sides
  const isOfRoot = number === OWN.root
  if (one.kind === 'resident') {
    if (two.kind !== 'resident' || one.value.length !== two.value.length) return false
    return viewValue(number, one.type, one.value).equals(viewValue(number, two.type, two.value))
  }
  if (two.kind !== 'apart' || !one.facts.equals(two.facts)) return false
  const isIndex = isOfRoot && one.type === ATTRIBUTE.indexBlocks
  const { clusterBytes, indexBytes } = before.layout
  return await isSameContent(
    { pieces: piecesOf(one.runs), read: before.read },
    { pieces: piecesOf(two.runs), read: after.read },
    clusterBytes,
    isIndex ? (bytes) => clearBlocks(bytes, indexBytes) : undefined,
  )
}

/** What no new size changes of an attribute that lies in its record. */
function viewValue(number: number, type: number, value: Buffer): Buffer {
  if (number === OWN.root && type === ATTRIBUTE.indexRoot) {
    return clearIndexSizes(value, CHANGED, true)
  }
  if (type === ATTRIBUTE.fileName && CHANGED.includes(number)) return clearFileSizes(value)
  // ntfsresize asks Windows for a check in the two bytes behind the version.
  const isVolume = number === OWN.volume && type === ATTRIBUTE.volumeInformation
  return isVolume ? value.subarray(0, 10) : value
}

/** As it is where blocks lie in several runs. */
function clearBlocks(bytes: Buffer, indexBytes: number): Buffer {
  if (bytes.length % indexBytes !== 0) return bytes
  const blocks = Array.from({ length: bytes.length / indexBytes }, (_, index) =>
    clearIndexSizes(bytes.subarray(index * indexBytes, (index + 1) * indexBytes), CHANGED, false),
  )
  return Buffer.concat(blocks)
}

/** Runs lie one behind the other. */
function piecesOf(runs: readonly Run[]): readonly Piece[] {
  let from = 0
  return runs.map(({ at, count }) => {
    const piece = { from, at, count }
    from += count
    return piece
  })
}

const PIECE_BYTES = 1024 * 1024

async function openNtfs(read: ReadBytes) {
  const boot = await read({ offset: 0, bytes: BOOT_BYTES })
  const layout = parseNtfsLayout(boot)
  const { clusterBytes, recordBytes } = layout
  const { runs, dataBytes } = await readTable(read, layout)
  let piece: { from: number; bytes: Buffer } = { from: -1, bytes: Buffer.alloc(0) }

  /** Bytes of the file table, piece by piece. */
  async function readPiece(from: number): Promise<Buffer> {
    let at = 0
    const parts: Buffer[] = []
    for (const run of runs) {
      const bytes = run.count * clusterBytes
      const start = Math.max(from, at)
      const end = Math.min(from + PIECE_BYTES, at + bytes)
      if (run.at !== null && start < end) {
        parts.push(await read({ offset: run.at * clusterBytes + start - at, bytes: end - start }))
      }
      at += bytes
    }
    return Buffer.concat(parts)
  }

  return {
    layout,
    boot,
    read,
    records: Math.floor(dataBytes / recordBytes),
    /** Null: never used. */
    async record(number: number): Promise<NtfsRecord | null> {
      const at = number * recordBytes
      const from = Math.floor(at / PIECE_BYTES) * PIECE_BYTES
      if (piece.from !== from) piece = { from, bytes: await readPiece(from) }
      const stored = piece.bytes.subarray(at - from, at - from + recordBytes)
      if (stored.length < recordBytes) throw new RangeError()
      return parseNtfsRecord(stored)
    },
  }
}

/** Where the file table lies. */
async function readTable(read: ReadBytes, { mftAt, clusterBytes, recordBytes }: NtfsLayout) {
  const own = parseNtfsRecord(await read({ offset: mftAt * clusterBytes, bytes: recordBytes }))
  const data = own?.attributes.find(({ type, hasName }) => type === ATTRIBUTE.data && !hasName)
  if (data?.kind !== 'apart') throw new RangeError()
  return data
}

/** The list of attributes elsewhere: its file table lies in more pieces than one record can hold. */
export async function isTableApart(read: ReadBytes): Promise<boolean> {
  const layout = parseNtfsLayout(await read({ offset: 0, bytes: 512 }))
  const { mftAt, clusterBytes, recordBytes } = layout
  const own = parseNtfsRecord(await read({ offset: mftAt * clusterBytes, bytes: recordBytes }))
  return own?.attributes.some(({ type }) => type === ATTRIBUTE.list) ?? true
}
