/** Fetches images from the followed cache to be kept: each once, verified, within the room that there is. */
import type { Fault } from '../../kit/foundation/fault.ts'
import type { Download } from '../store/downloads.ts'
import type { ImageStores } from '../store/image-stores.ts'
import type { NameRecord } from './kept-names.ts'
import { createNotes } from './notes.ts'

/** Milliseconds until an image that could not be kept is tried again. */
const SETBACK_MS = 60_000

interface FillsDependencies {
  readonly stores: ImageStores
  /** 0: as much as fits on the disk. */
  maxBytes(): number
  /** Milliseconds, of a clock that nobody sets. */
  elapsed(): number
  readonly log: { warn(message: string): void }
}

/** Creates what starts downloads. */
export function createFills({ stores, maxBytes, elapsed, log }: FillsDependencies) {
  const { downloads, room } = stores
  const setbacks = createNotes<Fault>(elapsed, SETBACK_MS)
  return {
    /** Why an image was not kept a moment ago; null: nothing is known against it. */
    setbackOf: (sha256: string): Fault | null => setbacks.find(sha256) ?? null,
    /** Joins the download under way; null: it failed a moment ago, and is not tried yet. */
    start({ url, sha256, name }: NameRecord): Download | null {
      const running = downloads.find(sha256)
      if (running !== null || setbacks.find(sha256) !== undefined) return running
      const download = downloads.start({
        key: sha256,
        url,
        sha256,
        name,
        format: null,
        anyContent: true,
        makeRoom: (bytes) => makeRoom(stores, maxBytes(), { key: sha256, bytes }),
      })
      void download.ended.then(() => {
        room.release(sha256)
        const failure = downloads.failureOf(sha256)
        downloads.forget(sha256)
        if (failure === null) return
        // One that broke off is gone on with at once when it is asked for again.
        if (failure.code !== 'source-broken') setbacks.note(sha256, failure)
        log.warn(`${name} is not kept: ${failure.message}`)
      })
      return download
    },
  }
}

/** Parts that nobody goes on with are the first to go. */
async function makeRoom(
  { partials, downloads, room }: ImageStores,
  maxBytes: number,
  { key, bytes }: { readonly key: string; readonly bytes: number },
): Promise<void> {
  const listed = await partials.list()
  const idle = listed.filter(({ name }) => name !== key && downloads.find(name) === null)
  const idleBytes = idle.reduce((sum, { offset }) => sum + offset, 0)
  const { storedBytes, freeBytes } = await room.space()
  const isTight = freeBytes < bytes || (maxBytes > 0 && storedBytes + idleBytes + bytes > maxBytes)
  if (isTight) for (const { name } of idle) await partials.remove(name)
  await room.make(key, bytes)
}
