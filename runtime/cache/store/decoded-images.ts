/** What the images in frames are once they are decoded, by the digest of their index. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import type { DecodedImage, DecodedMemory, IndexChecks } from '#engine/image/frame/index-checks.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { selectRecords } from '#kit/host/records.ts'
import type { BlobIndex } from '#cache/blobs/blob-index.ts'
import type { Blobs } from '#cache/blobs/blobs.ts'

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const DecodedSchema = z.object({ sizeBytes: z.int().min(0), sha256: Sha256.nullable() })

/** More images than any cache has; the oldest go first. */
const MAX = 10_000

export async function createDecodedImages(
  records: Storage,
  { onChange, log }: { onChange(): void; readonly log: { warn(message: string): void } },
): Promise<DecodedMemory> {
  const stored = selectRecords(records, 'decoded', DecodedSchema)
  const known = new Map<string, DecodedImage>(await stored.list())
  return {
    find: (indexSha256) => known.get(indexSha256) ?? null,
    /** Counts at once; the write may be lost in a crash, and is only late then. */
    remember(indexSha256, image) {
      if (known.has(indexSha256)) return
      known.set(indexSha256, image)
      onChange()
      const [oldest] = known.size > MAX ? known.keys() : []
      if (oldest !== undefined) {
        known.delete(oldest)
        stored.remove(oldest).catch(() => undefined)
      }
      stored.write(indexSha256, image).catch((thrown: unknown) => {
        log.warn(`the size of a decoded image is not recorded: ${renderError(thrown)}`)
      })
    },
  }
}

interface RecallDependencies {
  readonly index: Pick<BlobIndex, 'sources'>
  readonly blobs: Pick<Blobs, 'peek'>
  readonly indexes: Pick<IndexChecks, 'recall'>
  readonly log: { warn(message: string): void }
}

/** Reads the indexes of stored images whose record was not written before the cache ended. */
export function startRecalling(parts: RecallDependencies): AsyncDisposable {
  const closing = new AbortController()
  const work = recallAll(parts, closing.signal)
  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      await work
    },
  }
}

async function recallAll(
  { index, blobs, indexes, log }: RecallDependencies,
  signal: AbortSignal,
): Promise<void> {
  for (const { sha256, sizeBytes, checkedIndex } of index.sources().values()) {
    if (checkedIndex === null || signal.aborted) continue
    const name = `the image ${sha256.slice(0, 12)}`
    try {
      await using handle = await blobs.peek(sha256)
      await indexes.recall(handle, { checkedIndex, name, sizeBytes })
    } catch (thrown) {
      if (!signal.aborted) log.warn(`${name}: ${renderError(thrown)}`)
    }
  }
}
