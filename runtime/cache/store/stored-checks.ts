/** Decodes images that an earlier release stored without comparing their frames with their index. */
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import type { BlobIndex, StoredSource } from '../blobs/blob-index.ts'
import type { BlobRoom } from '../blobs/blob-room.ts'
import type { Blobs } from '../blobs/blobs.ts'
import type { IndexChecks } from '../../engine/image/frame/index-checks.ts'

interface StoredChecksDependencies {
  readonly index: BlobIndex
  readonly blobs: Pick<Blobs, 'peek'>
  readonly room: Pick<BlobRoom, 'sweep'>
  readonly indexes: IndexChecks
  readonly log: { warn(message: string): void }
}

/** One after the other. Until then images are offered by their own digest alone. */
export function startStoredChecks(parts: StoredChecksDependencies): AsyncDisposable {
  const closing = new AbortController()
  const work = checkAll(parts, closing.signal)
  return {
    async [Symbol.asyncDispose]() {
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      await work
    },
  }
}

async function checkAll(parts: StoredChecksDependencies, signal: AbortSignal): Promise<void> {
  for (const [key, source] of parts.index.sources()) {
    const { checkedIndex } = source
    if (checkedIndex === null || signal.aborted) continue
    try {
      if (checkedIndex === undefined) await checkOne(parts, key, source, signal)
      else await recallOne(parts, source, checkedIndex)
    } catch (thrown) {
      // Retried at the next start; until then the digest of its index is not published.
      if (!signal.aborted) parts.log.warn(`${nameOf(source)}: ${renderError(thrown)}`)
    }
  }
}

async function checkOne(
  { index, blobs, room, indexes, log }: StoredChecksDependencies,
  key: string,
  source: StoredSource,
  signal: AbortSignal,
): Promise<void> {
  const { sha256, sizeBytes } = source
  await using handle = await blobs.peek(sha256)
  const order = { name: nameOf(source), sizeBytes, signal }
  const checkedIndex = await indexes.check(handle, order).catch((thrown: unknown) => {
    if (thrown instanceof Fault && thrown.code === 'image-broken') return thrown
    throw thrown
  })
  // Downloaded anew or removed meanwhile.
  if (index.find(key) !== source) return
  if (!(checkedIndex instanceof Fault)) {
    await index.store(key, { ...source, checkedIndex })
    return
  }
  await index.forget(key)
  await room.sweep(sha256)
  log.warn(`${index.findEntry(key)?.name ?? key} was removed: ${checkedIndex.message}`)
}

/** For entries of releases that did not record the decoded image. */
async function recallOne(
  { blobs, indexes }: StoredChecksDependencies,
  source: StoredSource,
  checkedIndex: string,
): Promise<void> {
  const { sha256, sizeBytes } = source
  await using handle = await blobs.peek(sha256)
  await indexes.recall(handle, { checkedIndex, name: nameOf(source), sizeBytes })
}

const nameOf = ({ sha256 }: StoredSource) => `the image ${sha256.slice(0, 12)}`
