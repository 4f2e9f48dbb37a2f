/** Decodes zstd: small frames in parallel, a large one as a stream; finds out where the frames lie. */
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { createZstdDecompress, zstdDecompress } from 'node:zlib'
import { isAllZero } from '#engine/disk/rules/extents.ts'
import { Fault, systemCodeOf } from '#kit/foundation/fault.ts'
import {
  createTableMap,
  digestOfZeros,
  FRAME_BYTES,
  type FrameMap,
  type IndexRefusal,
  isIndexStart,
  MAX_INDEX_BYTES,
  MAX_STORED_BYTES,
  parseFrameIndex,
  renderIndexRefusal,
} from './rules/frame-map.ts'
import {
  createFrameWalker,
  MAX_SEEK_TABLE_BYTES,
  parseSeekFooter,
  parseSeekTable,
  readSeekEntry,
  renderZstdRefusal,
  SEEK_FOOTER_BYTES,
  type SeekFooter,
  type Span,
} from './rules/zstd.ts'
import type { Source } from './sources/source.ts'
import { type Blocks, blocksOf, CHUNK_BYTES, damaged, decodeThrough } from './stream-blocks.ts'

/** Up to these sizes, as of pzstd and ours, frames are decoded whole, side by side. */
const WHOLE_FRAME_BYTES = MAX_STORED_BYTES
const WHOLE_CONTENT_BYTES = 16 * 1024 * 1024
/** The last piece of each is mostly empty. */
const WHOLE_CHUNK_BYTES = 256 * 1024
/** More would only hold memory. */
const SIDE_BY_SIDE = Math.min(4, availableParallelism() + 1)
/** What zstd itself decodes unasked; `--long=28` and up makes more. */
const MAX_WINDOW_BYTES = 128 * 1024 * 1024

const decodeFrame = promisify(zstdDecompress)

export const openZstd = (source: Source): Blocks => blocksOf(decode(source), 'own')

type Spans = AsyncGenerator<Span, undefined>

async function* readSpans(source: Source, check: IndexCheck): Spans {
  const walker = createFrameWalker()
  for await (const chunk of source.stream()) {
    const spans = walker.push(chunk)
    if (!spans.ok) throw damaged(source, renderZstdRefusal(spans.refusal))
    check.see(chunk, spans.value)
    yield* spans.value
  }
  const end = walker.end()
  if (!end.ok) throw damaged(source, renderZstdRefusal(end.refusal))
}

async function* decode(source: Source): AsyncGenerator<Buffer> {
  const check = createIndexCheck()
  const spans = readSpans(source, check)
  const underWay: WholeFrame[] = []
  let frames = 0
  try {
    for (let span = await spans.next(); span.done !== true; span = await spans.next()) {
      if (span.value.kind !== 'frame-start') continue
      checkWindow(source, span.value.windowBytes)
      const { whole, parts } = await collect(spans, span.value.contentBytes)
      if (whole) {
        const decoded = decodeWhole(source, parts, check, frames)
        // Thrown when its turn comes.
        decoded.catch(() => undefined)
        underWay.push({ parts, decoded })
        if (underWay.length >= SIDE_BY_SIDE) yield* takeWhole(source, underWay.shift())
      } else {
        while (underWay.length > 0) yield* takeWhole(source, underWay.shift())
        yield* decodeStream(source, parts, spans)
      }
      frames += 1
    }
    while (underWay.length > 0) yield* takeWhole(source, underWay.shift())
    await compareIndex(source, check)
  } finally {
    await Promise.allSettled(underWay.map(({ decoded }) => decoded))
    await spans.return(undefined)
  }
}

/** A Fault where an index does not describe exactly the frames that came. */
async function compareIndex(source: Source, check: IndexCheck): Promise<void> {
  const map = await readFrameMap({ name: source.name, ...check.toFile() })
  const wrong = map === null || map.indexSha256 === null ? null : check.findWrong(map)
  if (wrong !== null) throw damaged(source, `frame ${wrong} does not match the index`)
}

interface WholeFrame {
  readonly parts: readonly Buffer[]
  /** Null: too large for memory. */
  readonly decoded: Promise<Buffer | null>
}

async function* takeWhole(source: Source, frame: WholeFrame | undefined): AsyncGenerator<Buffer> {
  if (frame === undefined) return
  const bytes = await frame.decoded
  if (bytes !== null) yield bytes
  else yield* decodeStream(source, frame.parts, null)
}

function checkWindow({ name }: Source, windowBytes: number) {
  if (windowBytes <= MAX_WINDOW_BYTES) return
  throw new Fault(
    'image-broken',
    `${name} needs a window of ${windowBytes} bytes to decode; at most ${MAX_WINDOW_BYTES} are supported`,
    { hint: 'Compress it again without --long, or with --long=27 at most.' },
  )
}

async function collect(spans: Spans, contentBytes: number | null) {
  const parts: Buffer[] = []
  if (contentBytes !== null && contentBytes > WHOLE_CONTENT_BYTES) return { whole: false, parts }
  for (let bytes = 0; bytes <= WHOLE_FRAME_BYTES;) {
    const { value } = await spans.next()
    if (value === undefined || value.kind === 'frame-end') return { whole: true, parts }
    if (value.kind !== 'data') continue
    // The source may reuse the chunk's memory.
    parts.push(Buffer.from(value.bytes))
    bytes += value.bytes.length
  }
  return { whole: false, parts }
}

async function decodeWhole(
  source: Source,
  parts: readonly Buffer[],
  check: IndexCheck,
  index: number,
): Promise<Buffer | null> {
  const frame = Buffer.concat(parts)
  try {
    const content = await decodeFrame(frame, {
      chunkSize: WHOLE_CHUNK_BYTES,
      maxOutputLength: WHOLE_CONTENT_BYTES,
    })
    await check.take(index, content)
    return content
  } catch (thrown) {
    if (systemCodeOf(thrown) === 'ERR_BUFFER_TOO_LARGE') return null
    throw damaged(source, thrown)
  }
}

async function* decodeStream(
  source: Source,
  parts: readonly Buffer[],
  spans: Spans | null,
): AsyncGenerator<Buffer> {
  async function* frame() {
    yield* parts
    if (spans === null) return
    for (let span = await spans.next(); span.done !== true; span = await spans.next()) {
      if (span.value.kind === 'frame-end') return
      if (span.value.kind === 'data') yield span.value.bytes
    }
  }
  yield* decodeThrough(source, frame(), createZstdDecompress({ chunkSize: CHUNK_BYTES }))
}

// Compares the frames of a zstd image that is read from start to end with the index at its end.

interface FoundFrame {
  storedBytes: number
  /** An index can describe it; then its content is hashed. */
  readonly isLikely: boolean
  content: { readonly bytes: number; readonly sha256: string } | null
}

type IndexCheck = ReturnType<typeof createIndexCheck>

function createIndexCheck() {
  const frames: FoundFrame[] = []
  const tail = createTail()
  /** Only the last frame holds less than a whole frame. */
  let canGoOn = true

  function begin(contentBytes: number | null) {
    const isLikely = canGoOn && contentBytes !== null && contentBytes <= FRAME_BYTES
    canGoOn = isLikely && contentBytes === FRAME_BYTES
    frames.push({ storedBytes: 0, isLikely, content: null })
  }

  return {
    see(chunk: Buffer, spans: readonly Span[]) {
      for (const span of spans) {
        if (span.kind === 'frame-start') begin(span.contentBytes)
        const last = frames.at(-1)
        if (span.kind === 'data' && last !== undefined) last.storedBytes += span.bytes.length
      }
      tail.push(chunk, frames.length)
    },
    async take(index: number, content: Buffer<ArrayBuffer>): Promise<void> {
      const frame = frames[index]
      if (frame?.isLikely !== true) return
      frame.content = { bytes: content.length, sha256: await hashContent(content) }
    },
    toFile: tail.toFile,
    /** The first frame that the index does not describe; null: none. */
    findWrong: (map: FrameMap): number | null => findWrongFrame(map, frames),
  }
}

function findWrongFrame(map: FrameMap, frames: readonly FoundFrame[]): number | null {
  for (let index = 0; index < Math.max(map.count, frames.length); index += 1) {
    const found = frames[index]
    if (found === undefined || index >= map.count) return index
    const { storedBytes, bytes, sha256 } = map.at(index)
    const isRight =
      found.storedBytes === storedBytes &&
      found.content?.bytes === bytes &&
      found.content.sha256 === sha256
    if (!isRight) return index
  }
  return null
}

/** Not on this thread: hashing takes as long as decoding. */
async function hashContent(content: Buffer<ArrayBuffer>): Promise<string> {
  if (isAllZero(content)) return digestOfZeros(content.length).toString('hex')
  return Buffer.from(await crypto.subtle.digest('SHA-256', content)).toString('hex')
}

/** 40 bytes of the index, 12 of the seek table. */
const TABLE_BYTES_PER_FRAME = 52
const TABLE_BYTES = 256

/** As many bytes as the tables of the frames can take. */
function createTail() {
  const parts: Buffer[] = []
  let kept = 0
  let sizeBytes = 0
  return {
    push(chunk: Buffer, frames: number) {
      const wanted = TABLE_BYTES + TABLE_BYTES_PER_FRAME * frames
      // The source may reuse the chunk's memory.
      parts.push(Buffer.from(chunk.subarray(-wanted)))
      kept += Math.min(wanted, chunk.length)
      sizeBytes += chunk.length
      for (let first = parts[0]; first && kept - first.length >= wanted; first = parts[0]) {
        kept -= first.length
        parts.shift()
      }
    },
    toFile() {
      const tail = Buffer.concat(parts)
      const tailAt = sizeBytes - tail.length
      return {
        sizeBytes,
        async readAt(into: Buffer, at: number): Promise<number> {
          into.fill(0)
          const before = Math.max(0, tailAt - at)
          if (before < into.length) tail.copy(into, before, Math.max(0, at - tailAt))
          return Math.min(into.length, sizeBytes - at)
        },
      }
    },
  }
}

type MappedFile = Pick<Source, 'name' | 'sizeBytes'> & {
  readonly readAt: NonNullable<Source['readAt']>
}

const INDEX_START_BYTES = 16
/** The tables of an image of some 5 GiB. */
const TAIL_BYTES = 64 * 1024

/** Null: no index or seek table, or the file is not all frames. A Fault for a wrong index. */
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
  if (storedBytes > MAX_INDEX_BYTES) throw wrongIndex(file, { why: 'too-large' })
  const map = parseFrameIndex(await readPart(storedAt, storedBytes), storedAt)
  if (!map.ok && map.refusal.why === 'other-version') return null
  if (!map.ok) throw wrongIndex(file, map.refusal)
  if (!agrees(map.value, table, footer)) throw wrongIndex(file, { why: 'table-disagrees' })
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

const wrongIndex = ({ name }: MappedFile, refusal: IndexRefusal) =>
  new Fault('image-broken', `${name} is damaged: ${renderIndexRefusal(refusal)}`, {
    hint: 'Download or pack the image again and compare its checksum.',
  })

/**
 * Reads an image of frames here and there: fewer bytes only at its end. Null: its frames are not
 * known, or too large to be decoded for a few bytes. Faults as `readFrameMap`.
 */
export async function openFrameReader(file: MappedFile): Promise<MappedFile['readAt'] | null> {
  const found = await readFrameMap(file)
  if (found === null || found.maxBytes > WHOLE_CONTENT_BYTES) return null
  const map = found
  let kept: { readonly index: number; readonly content: Buffer } | null = null

  async function load(index: number): Promise<Buffer> {
    if (kept?.index === index) return kept.content
    const { storedAt, storedBytes, bytes, isZero } = map.at(index)
    const content = isZero
      ? Buffer.alloc(bytes)
      : await unpack(file, await read(file, storedAt, storedBytes), bytes)
    kept = { index, content }
    return content
  }

  return async (into, from) => {
    let at = 0
    while (at < into.length && from + at < map.bytes) {
      const index = findFrame(map, from + at)
      const content = await load(index)
      at += content.copy(into, at, from + at - map.at(index).offset)
    }
    return at
  }
}

async function unpack(file: MappedFile, stored: Buffer, bytes: number): Promise<Buffer> {
  try {
    const content = await decodeFrame(stored, { maxOutputLength: Math.max(1, bytes) })
    if (content.length === bytes) return content
    throw new Error(`${content.length} bytes instead of ${bytes}`)
  } catch (thrown) {
    throw damaged(file, thrown)
  }
}

/** The frame with this byte of the image; frames are in order. */
function findFrame(map: FrameMap, offset: number): number {
  let [low, high] = [0, map.count - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (map.at(middle).offset <= offset) low = middle
    else high = middle - 1
  }
  return low
}
