/** Finds out where the frames of a zstd file lie, by its index or its seek table; a few reads at its end. */
import { Fault } from '#kit/foundation/fault.ts'
import {
  isIndexStart,
  MAX_INDEX_BYTES,
  parseFrameIndex,
  renderIndexRefusal,
  type IndexRefusal,
} from './rules/frame-index.ts'
import type { FrameMap } from './rules/frame-map.ts'
import { createTableMap } from './rules/seek-map.ts'
import {
  MAX_SEEK_TABLE_BYTES,
  parseSeekFooter,
  parseSeekTable,
  readSeekEntry,
  SEEK_FOOTER_BYTES,
  type SeekFooter,
} from './rules/zstd-walker.ts'
import type { Source } from './sources/source.ts'

type MappedFile = Pick<Source, 'name' | 'sizeBytes'> & {
  readonly readAt: NonNullable<Source['readAt']>
}

const INDEX_START_BYTES = 16
/** The tables of an image of some 5 GiB. */
const TAIL_BYTES = 64 * 1024

/**
 * Null: no index or seek table, or not all of the file is frames. Rejects with a Fault for a wrong
 * index.
 */
export async function readFrameMap(file: MappedFile): Promise<FrameMap | null> {
  const { sizeBytes } = file
  if (sizeBytes === null || sizeBytes < SEEK_FOOTER_BYTES) return null
  const readPart = await createTailReader(file, sizeBytes)
  const last = await readPart(sizeBytes - SEEK_FOOTER_BYTES, SEEK_FOOTER_BYTES)
  const footer = parseSeekFooter(last, 0)
  if (!footer.ok || footer.value.tableBytes > Math.min(sizeBytes, MAX_SEEK_TABLE_BYTES)) return null
  const tableAt = sizeBytes - footer.value.tableBytes
  const table = await readPart(tableAt, footer.value.tableBytes)
  const sums = parseSeekTable(table, footer.value)
  if (!sums.ok || sums.value.frameBytes !== tableAt) return null
  const index = await readIndex(file, readPart, tableAt, table, footer.value)
  return index ?? createTableMap(table, footer.value)
}

/** It lies right before the seek table, which lists it as a frame without content. */
async function readIndex(
  file: MappedFile,
  readPart: ReadPart,
  tableAt: number,
  table: Buffer,
  footer: SeekFooter,
): Promise<FrameMap | null> {
  if (footer.frames === 0) return null
  const { storedBytes, contentBytes } = readSeekEntry(table, footer, footer.frames - 1)
  if (contentBytes !== 0 || storedBytes < INDEX_START_BYTES) return null
  const storedAt = tableAt - storedBytes
  if (!isIndexStart(await readPart(storedAt, INDEX_START_BYTES))) return null
  if (storedBytes > MAX_INDEX_BYTES) throw wrong(file, { why: 'too-large' })
  const map = parseFrameIndex(await readPart(storedAt, storedBytes), storedAt)
  if (!map.ok && map.refusal.why === 'other-version') return null
  if (!map.ok) throw wrong(file, map.refusal)
  if (!agrees(map.value, table, footer)) throw wrong(file, { why: 'table-disagrees' })
  return map.value
}

function agrees(map: FrameMap, table: Buffer, footer: SeekFooter): boolean {
  if (map.count !== footer.frames - 1) return false
  for (let index = 0; index < map.count; index += 1) {
    const entry = readSeekEntry(table, footer, index)
    const frame = map.at(index)
    const isSame = entry.storedBytes === frame.storedBytes && entry.contentBytes === frame.bytes
    if (!isSame) return false
  }
  return true
}

type ReadPart = (at: number, length: number) => Promise<Buffer>

/** Most of what is asked for is in the last bytes. */
async function createTailReader(file: MappedFile, sizeBytes: number): Promise<ReadPart> {
  const tailAt = Math.max(0, sizeBytes - TAIL_BYTES)
  const tail = await read(file, tailAt, sizeBytes - tailAt)
  return async (at, length) =>
    at >= tailAt ? tail.subarray(at - tailAt, at - tailAt + length) : read(file, at, length)
}

async function read({ name, readAt }: MappedFile, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  if ((await readAt(bytes, at)) === length) return bytes
  throw new Fault('source-broken', `${name} became shorter while it was read`)
}

const wrong = ({ name }: MappedFile, refusal: IndexRefusal) =>
  new Fault('image-broken', `${name} is damaged: ${renderIndexRefusal(refusal)}`, {
    hint: 'Download or pack the image again and compare its checksum.',
  })
