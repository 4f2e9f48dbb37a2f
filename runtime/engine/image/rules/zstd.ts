/** The zstd file format (RFC 8878): headers of frames and blocks, and a walk over a stream. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export type ZstdProblem =
  | { readonly why: 'cut-off' }
  | { readonly why: 'not-a-frame' }
  /** zstd 0.1 to 0.7, which no decoder of today reads by default. */
  | { readonly why: 'legacy'; readonly version: string }
  | { readonly why: 'dictionary'; readonly id: number }
  | { readonly why: 'reserved-bit' }
  /** Beyond what a number counts exactly: 8 PiB. */
  | { readonly why: 'content-too-large' }

/** `at`: offset in the file; with `cut-off`, where the file ends. */
export type ZstdRefusal = { readonly at: number } & (
  | ZstdProblem
  | { readonly why: 'garbage-after-frame' }
  | { readonly why: 'bad-block' }
  | { readonly why: 'no-frame' }
)

export type FrameHeader =
  | { readonly kind: 'skippable'; readonly headerBytes: 8; readonly bodyBytes: number }
  | {
      readonly kind: 'frame'
      readonly headerBytes: number
      /** Null: the compressor did not know it (a pipe, pzstd). */
      readonly contentBytes: number | null
      readonly windowBytes: number
      readonly isSingleSegment: boolean
      readonly hasChecksum: boolean
    }

type BlockHeader = {
  readonly last: boolean
  readonly type: 'raw' | 'rle' | 'compressed' | 'reserved'
  /** In the file, after its 3-byte header. */
  readonly bytes: number
  /** Bytes in the file; of `rle` once decoded. */
  readonly sizeField: number
}

export const MAX_FRAME_HEADER_BYTES = 18
export const BLOCK_HEADER_BYTES = 3
/** A block holds no more, compressed or decoded, nor more than its frame's window. */
export const MAX_BLOCK_BYTES = 128 * 1024

const MAGIC = 0xfd2fb528
const LEGACY: Readonly<Record<number, string>> = {
  0x1eb52ffd: '0.1',
  0xfd2fb522: '0.2',
  0xfd2fb523: '0.3',
  0xfd2fb524: '0.4',
  0xfd2fb525: '0.5',
  0xfd2fb526: '0.6',
  0xfd2fb527: '0.7',
}
const BLOCK_TYPES = ['raw', 'rle', 'compressed', 'reserved'] as const
const CUT_OFF = refuse({ why: 'cut-off' } as const)

export const isSkippableMagic = (magic: number) => (magic & 0xfffffff0) >>> 0 === 0x184d2a50
/** `0.1` to `0.7`; null: today's. */
export const legacyVersion = (magic: number): string | null => LEGACY[magic] ?? null

/** `cut-off`: more bytes are needed. */
export function parseFrameHeader(bytes: Buffer, at: number): Result<FrameHeader, ZstdProblem> {
  if (bytes.length - at < 4) return CUT_OFF
  const magic = bytes.readUInt32LE(at)
  if (isSkippableMagic(magic)) {
    if (bytes.length - at < 8) return CUT_OFF
    return accept({ kind: 'skippable', headerBytes: 8, bodyBytes: bytes.readUInt32LE(at + 4) })
  }
  const version = legacyVersion(magic)
  if (version !== null) return refuse({ why: 'legacy', version })
  return magic === MAGIC ? parseFields(bytes, at + 4) : refuse({ why: 'not-a-frame' })
}

/** `at`: of the descriptor, which says which fields follow. */
function parseFields(bytes: Buffer, at: number): Result<FrameHeader, ZstdProblem> {
  const descriptor = bytes[at]
  if (descriptor === undefined) return CUT_OFF
  if (descriptor & 0x08) return refuse({ why: 'reserved-bit' })
  const isSingleSegment = (descriptor & 0x20) !== 0
  const { idAt, idBytes, sizeAt, sizeBytes } = layOut(at, descriptor)
  const end = sizeAt + sizeBytes
  if (bytes.length < end) return CUT_OFF
  const id = idBytes === 0 ? 0 : bytes.readUIntLE(idAt, idBytes)
  if (id !== 0) return refuse({ why: 'dictionary', id })
  const contentBytes = parseContentBytes(bytes, sizeAt, sizeBytes)
  if (Number.isNaN(contentBytes)) return refuse({ why: 'content-too-large' })
  return accept({
    kind: 'frame',
    headerBytes: 4 + end - at,
    contentBytes,
    windowBytes: isSingleSegment ? (contentBytes ?? 0) : parseWindow(bytes.readUInt8(at + 1)),
    isSingleSegment,
    hasChecksum: (descriptor & 4) !== 0,
  })
}

function layOut(at: number, descriptor: number) {
  const isSingleSegment = (descriptor & 0x20) !== 0
  const idAt = at + (isSingleSegment ? 1 : 2)
  const idBytes = [0, 1, 2, 4][descriptor & 3] ?? 0
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0
  return { idAt, idBytes, sizeAt: idAt + idBytes, sizeBytes }
}

/** Null: not in the header; NaN: too large to count. */
function parseContentBytes(bytes: Buffer, at: number, length: number): number | null {
  if (length === 0) return null
  if (length === 2) return bytes.readUInt16LE(at) + 256
  if (length < 8) return bytes.readUIntLE(at, length)
  const high = bytes.readUInt32LE(at + 4)
  return high > 0x1fffff ? Number.NaN : high * 2 ** 32 + bytes.readUInt32LE(at)
}

const parseWindow = (descriptor: number) =>
  2 ** (10 + (descriptor >> 3)) * (1 + (descriptor & 7) / 8)

/** Whether its size is allowed depends on the frame. */
export function parseBlockHeader(
  bytes: Buffer,
  at: number,
): Result<BlockHeader, { readonly why: 'cut-off' }> {
  if (bytes.length - at < BLOCK_HEADER_BYTES) return CUT_OFF
  const header = bytes.readUIntLE(at, 3)
  const type = BLOCK_TYPES[(header >> 1) & 3] ?? 'reserved'
  const sizeField = header >> 3
  const size = type === 'rle' ? 1 : sizeField
  return accept({ last: (header & 1) === 1, type, bytes: size, sizeField })
}

const MESSAGES: Cases<'why', ZstdRefusal, string> = {
  'cut-off': ({ at }) => `the zstd data ends after ${at} bytes, in the middle of a frame`,
  'not-a-frame': ({ at }) => `no zstd data at byte ${at}`,
  legacy: ({ version }) =>
    `written by zstd ${version}, whose format is no longer read: recompress it`,
  dictionary: ({ id }) => `compressed with the zstd dictionary ${id}, which is not at hand`,
  'reserved-bit': ({ at }) => `the zstd frame at byte ${at} uses a feature that is not known`,
  'content-too-large': ({ at }) => `the zstd frame at byte ${at} claims more than 8 PiB`,
  'garbage-after-frame': ({ at }) => `something that is not zstd data follows at byte ${at}`,
  'bad-block': ({ at }) => `the zstd block at byte ${at} is damaged`,
  'no-frame': () => 'no zstd data in it',
}

/** A clause behind the image's name. */
export const renderZstdRefusal = (refusal: ZstdRefusal): string =>
  decideCase(MESSAGES, 'why', refusal)

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
