/** The seek table at the end of zstd's seekable format: what it says of the frames before it. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export interface SeekFooter {
  readonly frames: number
  readonly entryBytes: 8 | 12
  readonly tableBytes: number
}

interface SeekTable {
  /** Of the frames in the file, without the table. */
  readonly frameBytes: number
  readonly contentBytes: number
}

interface SeekEntry {
  readonly storedBytes: number
  readonly contentBytes: number
}

export const SEEK_FOOTER_BYTES = 9
/** Some million frames. */
export const MAX_SEEK_TABLE_BYTES = 16 * 1024 * 1024

const SEEK_MAGIC = 0x8f92eab1
const SEEK_FRAME_MAGIC = 0x184d2a5e
const HEADER_BYTES = 8

/** A file's last nine bytes. */
export function parseSeekFooter(bytes: Buffer, at: number): Result<SeekFooter, 'no-table'> {
  if (bytes.length - at < SEEK_FOOTER_BYTES) return refuse('no-table')
  const descriptor = bytes.readUInt8(at + 4)
  const isKnown = bytes.readUInt32LE(at + 5) === SEEK_MAGIC && (descriptor & 0x7c) === 0
  if (!isKnown) return refuse('no-table')
  const frames = bytes.readUInt32LE(at)
  const entryBytes = descriptor & 0x80 ? 12 : 8
  const tableBytes = HEADER_BYTES + frames * entryBytes + SEEK_FOOTER_BYTES
  return accept({ frames, entryBytes, tableBytes })
}

export function parseSeekTable(bytes: Buffer, footer: SeekFooter): Result<SeekTable, 'no-table'> {
  const { frames, tableBytes } = footer
  const isFrame =
    bytes.length >= tableBytes &&
    bytes.readUInt32LE(0) === SEEK_FRAME_MAGIC &&
    bytes.readUInt32LE(4) === tableBytes - HEADER_BYTES
  if (!isFrame) return refuse('no-table')
  let frameBytes = 0
  let contentBytes = 0
  for (let frame = 0; frame < frames; frame++) {
    const entry = readSeekEntry(bytes, footer, frame)
    frameBytes += entry.storedBytes
    contentBytes += entry.contentBytes
  }
  return accept({ frameBytes, contentBytes })
}

export const readSeekEntry = (
  bytes: Buffer,
  { entryBytes }: SeekFooter,
  frame: number,
): SeekEntry => ({
  storedBytes: bytes.readUInt32LE(HEADER_BYTES + frame * entryBytes),
  contentBytes: bytes.readUInt32LE(HEADER_BYTES + 4 + frame * entryBytes),
})

export function encodeSeekTable(entries: readonly SeekEntry[]): Buffer {
  const table = Buffer.alloc(HEADER_BYTES + entries.length * 8 + SEEK_FOOTER_BYTES)
  table.writeUInt32LE(SEEK_FRAME_MAGIC, 0)
  table.writeUInt32LE(table.length - HEADER_BYTES, 4)
  entries.forEach(({ storedBytes, contentBytes }, index) => {
    table.writeUInt32LE(storedBytes, HEADER_BYTES + index * 8)
    table.writeUInt32LE(contentBytes, HEADER_BYTES + index * 8 + 4)
  })
  const footer = table.length - SEEK_FOOTER_BYTES
  table.writeUInt32LE(entries.length, footer)
  table.writeUInt32LE(SEEK_MAGIC, footer + 5)
  return table
}
