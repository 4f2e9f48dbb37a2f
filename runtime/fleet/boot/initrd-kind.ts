/** Checks whether an initrd is one of ours: each of ours contains a manifest. */
import { ROOT_MANIFEST } from '#appliance/initrd.ts'
import { createNewcWalker, type NewcStep } from './rules/newc-walker.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Decoders } from '#engine/image/formats.ts'
import { openFileSource } from '#engine/image/sources/file-source.ts'
import type { Source } from '#engine/image/sources/source.ts'

/** `unknown`: not read to its end, so nothing is proven. */
export type InitrdKind = 'ours' | 'foreign' | 'unknown'

/** Several times an unpacked initrd with all drivers and firmware. */
const MAX_BYTES = 1024 ** 3
const PIECE_BYTES = 256 * 1024

/** By first bytes; the kernel accepts more formats than this program reads. */
const FORMATS: readonly (readonly [string, ImageFormat])[] = [
  ['1f8b', 'img.gz'],
  ['28b52ffd', 'img.zst'],
  ['fd377a585a00', 'img.xz'],
]

/** Reads up to 1 GiB unpacked: plain archives, then one compressed stream of archives. */
export async function readInitrdKind(
  path: string,
  decoders: Decoders,
  signal: AbortSignal,
): Promise<InitrdKind> {
  try {
    await using source = await openFileSource(path, signal)
    const walker = createNewcWalker(ROOT_MANIFEST)
    const budget = { bytes: MAX_BYTES, signal }
    const plain = await walk(source.stream(), walker.push, budget)
    if (plain.kind === 'rest') {
      const rest = tailOf(source, plain.at)
      const format = await readFormat(rest)
      if (format === null) return 'unknown'
      await using blocks = await decoders.open(rest, format)
      const packed = await walk(listPieces(blocks), walker.push, budget)
      return decide(packed, walker.isAtEnd())
    }
    return decide(plain, walker.isAtEnd())
  } catch {
    // Damaged, changed, a missing tool, or out of time: nothing is proven.
    return 'unknown'
  }
}

function decide({ kind }: NewcStep, isAtEnd: boolean): InitrdKind {
  if (kind === 'found') return 'ours'
  return kind === 'more' && isAtEnd ? 'foreign' : 'unknown'
}

interface Budget {
  bytes: number
  readonly signal: AbortSignal
}

/** `rest` counts from the first byte. */
async function walk(
  chunks: AsyncIterable<Uint8Array>,
  push: (chunk: Uint8Array) => NewcStep,
  budget: Budget,
): Promise<NewcStep> {
  let at = 0
  for await (const chunk of chunks) {
    budget.signal.throwIfAborted()
    const step = push(chunk)
    if (step.kind === 'rest') return { kind: 'rest', at: at + step.at }
    if (step.kind !== 'more') return step
    at += chunk.length
    budget.bytes -= chunk.length
    if (budget.bytes < 0) throw new RangeError('it unpacks to more than is read')
  }
  return { kind: 'more' }
}

async function* listPieces(blocks: Awaited<ReturnType<Decoders['open']>>) {
  const into = Buffer.allocUnsafe(PIECE_BYTES)
  const zeros = Buffer.alloc(PIECE_BYTES)
  for (let piece = await blocks.next(into); piece !== null; piece = await blocks.next(into)) {
    if (piece.kind === 'data') yield into.subarray(0, piece.bytes)
    else for (let rest = piece.bytes; rest > 0; rest -= PIECE_BYTES) yield zeros.subarray(0, rest)
  }
}

const tailOf = (source: Source, at: number): Source => ({
  ...source,
  path: null,
  sizeBytes: source.sizeBytes === null ? null : source.sizeBytes - at,
  readAt: null,
  stream: (from = 0) => source.stream(at + from),
  [Symbol.asyncDispose]: async () => {},
})

async function readFormat(source: Source): Promise<ImageFormat | null> {
  for await (const chunk of source.stream()) {
    const head = chunk.toString('hex', 0, 6)
    return FORMATS.find(([magic]) => head.startsWith(magic))?.[1] ?? null
  }
  return null
}
