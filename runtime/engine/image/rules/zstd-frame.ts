/** Finds the end of a zstd frame by its headers alone (RFC 8878). */
import { BLOCK_HEADER_BYTES, parseBlockHeader, parseFrameHeader } from './zstd.ts'

/** Bytes; null: no frame, or `data` ends inside it. */
export function findFrameEnd(data: Buffer): number | null {
  const header = parseFrameHeader(data, 0)
  if (!header.ok) return null
  const { value } = header
  const end =
    value.kind === 'skippable'
      ? value.headerBytes + value.bodyBytes
      : findBlocksEnd(data, value.headerBytes) + (value.hasChecksum ? 4 : 0)
  return end <= data.length ? end : null
}

/** Infinity: the data ends before the last block. */
function findBlocksEnd(data: Buffer, from: number): number {
  let at = from
  while (at < data.length) {
    const block = parseBlockHeader(data, at)
    if (!block.ok) break
    at += BLOCK_HEADER_BYTES + block.value.bytes
    if (block.value.last) return at
  }
  return Number.POSITIVE_INFINITY
}
