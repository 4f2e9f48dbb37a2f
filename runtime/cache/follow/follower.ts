/** A cache of bytes that fills itself from another one: keeps what was asked for, whole and verified, and may lose all of it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sources } from '../../engine/image/sources/sources.ts'
import { Fault } from '../../kit/foundation/fault.ts'
import { ifMissing } from '../../kit/foundation/system-error.ts'
import { replaceFile } from '../../kit/host/atomic-file.ts'
import { type BlobReader, openWhole } from '../store/blob-readers.ts'
import { type ImageStores, lockFolder, openStores } from '../store/image-stores.ts'
import { createFills } from './fills.ts'
import { createFollowReader, isLie } from './follow-reader.ts'
import type { Followed } from './followed.ts'
import { type KeptNames, openKeptNames } from './kept-names.ts'
import { createPresences, type FollowedImage } from './presences.ts'
import { createRelay } from './relay.ts'
import type { AskedImage } from './rules/followed-address.ts'

interface ByteFollowerDependencies {
  /** Everything of it lies in `.follow` there. */
  readonly folder: string
  readonly followed: Followed
  readonly sources: Pick<Sources, 'open'>
  /** 0: as much as fits on the disk. */
  maxBytes(): number
  now(): Date
  /** Milliseconds, of a clock that nobody sets. */
  elapsed?(): number
  readonly log: { info(message: string): void; warn(message: string): void }
  readonly againMs?: number
}

export type Follower = Awaited<ReturnType<typeof createFollower>>

/** Not that of a cache which keeps images: nothing of it is ours to remove. */
const DATA_FOLDER = '.follow'

/**
 * Opens what the folder holds and goes on with interrupted downloads. Rejects with a Fault
 * `conflict` where another process uses the folder.
 */
export async function createFollower(parts: ByteFollowerDependencies) {
  const { folder, followed, now, elapsed = () => performance.now() } = parts
  const data = join(folder, DATA_FOLDER)
  const lock = await lockFolder(folder, data)
  const stores = await openStores(
    {
      ...parts,
      // The followed cache has decoded it, and the digest says that these are its bytes.
      frameChecks: { check: async () => null },
      maxBytes: () => parts.maxBytes() || Infinity,
      upstreamSeconds: () => Infinity,
    },
    data,
  )
  const { downloads } = stores
  const names = await openKeptNames(stores.records, (sha256) => isHere(stores, sha256))
  const presences = createPresences(followed, elapsed)
  const fills = createFills({ ...parts, stores, elapsed })
  await resume(stores, names, fills)
  const listPath = join(data, 'catalog.json')

  const openHeld = (sha256: string): Promise<BlobReader | null> =>
    openWhole({ ...stores, now }, sha256)

  /** What was here last under this address; rethrows where that is nothing or something else. */
  async function openLast({ key, wanted }: AskedImage, thrown: unknown): Promise<BlobReader> {
    const last = isAway(thrown) ? names.find(key) : null
    const isRight = last !== null && (wanted === null || wanted === last.sha256)
    const held = isRight ? await openHeld(last.sha256) : null
    if (held === null) throw thrown
    return held
  }

  async function openMissing(asked: AskedImage, found: FollowedImage): Promise<BlobReader> {
    const { sha256, url } = found
    const relay = createRelay(followed, found)
    if (sha256 === null) return createFollowReader({ ...found, downloads, download: null, relay })
    const setback = fills.setbackOf(sha256)
    if (setback !== null && isLie(setback)) throw liar(followed.base, setback.message)
    const record = { url, sha256, name: asked.name }
    // Before a byte of it is here: after a kill, this says what the part is of.
    await names.save(asked.key, record)
    return createFollowReader({ ...found, downloads, download: fills.start(record), relay })
  }

  return {
    /** Opens an image; throws the refusal or the Fault that its client gets. */
    async open(asked: AskedImage, hops: number): Promise<BlobReader> {
      const held = asked.wanted === null ? null : await openHeld(asked.wanted)
      if (held !== null) return held
      const found = await presences.find(asked, hops).catch((thrown: unknown) => ({ thrown }))
      if ('thrown' in found) return openLast(asked, found.thrown)
      const { sha256 } = found
      return (sha256 === null ? null : await openHeld(sha256)) ?? openMissing(asked, found)
    },
    /** The list of the followed cache, as JSON; the last one that came where that is away. */
    async list(all: boolean, hops: number): Promise<string> {
      try {
        const list = await followed.list(all, hops)
        if (!all) await replaceFile(listPath, list)
        return list
      } catch (thrown) {
        const kept = all ? null : await readFile(listPath, 'utf8').catch(ifMissing(null))
        if (kept === null) throw thrown
        return kept
      }
    },
    async [Symbol.asyncDispose]() {
      await downloads[Symbol.asyncDispose]()
      lock[Symbol.dispose]()
    },
  }
}

const isHere = async ({ index, partials }: ImageStores, sha256: string) =>
  index.find(sha256) !== null || (await partials.find(sha256)) !== null

/** Continues the downloads that a stop interrupted, and removes parts of nothing that is known. */
async function resume(
  { partials }: ImageStores,
  names: KeptNames,
  fills: ReturnType<typeof createFills>,
): Promise<void> {
  await partials.sweep((sha256) => names.findVersion(sha256) !== null)
  for (const { name: sha256, record } of await partials.list()) {
    const named = names.findVersion(sha256)
    if (named !== null && record.isWanted) fills.start(named)
  }
}

const isAway = (thrown: unknown) => thrown instanceof Fault && thrown.code === 'upstream-failed'

const liar = (base: string, why: string) =>
  new Fault('source-broken', `${base} sends other bytes than it says: ${why}`, {
    hint: 'Download the image there again; this cache keeps nothing of it and asks again in a minute.',
  })
