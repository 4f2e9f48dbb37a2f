/** Recognises a file that a command names, and whose name says nothing, by what it holds. */
import { isDiskImage, MARK_BYTES } from './rules/raw-image.ts'
import { Fault } from '#kit/foundation/fault.ts'
import {
  detectContent,
  formatOfContent,
  isOutOfOrder,
  isStoredRaw,
  isTarballName,
} from '../rules/format.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Decoders } from '../formats.ts'
import { createFiller } from '../filler.ts'
import type { Source } from '../sources/source.ts'

/**
 * Positively a disk image: a partition table, an optical disc, a qcow2, or one of them compressed.
 * A file without any name, as from some registries, goes by its compression. Null: unknown.
 */
export async function recogniseFormat(
  source: Source,
  decoders: Decoders,
): Promise<ImageFormat | null> {
  if (isTarballName(source.fileName)) return null
  const head = await readStart(source)
  const format = head === null ? null : formatOfContent(detectContent(head))
  if (head === null || format === null) return null
  if (isStoredRaw(format)) return isDiskImage(head) ? format : null
  if (isOutOfOrder(format) || source.isNameless === true) return format
  return (await holdsDisk(source, format, decoders)) ? format : null
}

/** Null: nothing can be read more than once. */
async function readStart({ readAt, url, sizeBytes, stream }: Source): Promise<Buffer | null> {
  if (readAt !== null) {
    const into = Buffer.alloc(Math.min(MARK_BYTES, sizeBytes ?? MARK_BYTES))
    return into.subarray(0, await readAt(into, 0))
  }
  if (url === null) return null
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream()) {
    // The source may reuse its memory.
    chunks.push(Buffer.from(chunk))
    bytes += chunk.length
    if (bytes >= MARK_BYTES) break
  }
  return Buffer.concat(chunks).subarray(0, MARK_BYTES)
}

async function holdsDisk(
  source: Source,
  format: ImageFormat,
  decoders: Decoders,
): Promise<boolean> {
  await using blocks = await decoders.open(source, format)
  const into = Buffer.alloc(MARK_BYTES)
  try {
    return isDiskImage(into.subarray(0, await createFiller(blocks).fill(into)))
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === 'image-broken') return false
    throw thrown
  }
}
