/** Images that somebody dropped into the cache's folder: offered once they are whole and hashed. */
import { watch as watchFolder } from 'node:fs'
import { type FileHandle, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Storage } from 'unstorage'
import { type FileStamp, isSameStamp, whyNotAnImage } from '../../core/catalog/dropped-file.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { createDigests, hashFile } from './file-digests.ts'
import { isStill, openStamped, readStamp } from './file-stamps.ts'
import { makeFolder } from '../host/folders.ts'
import { readSidecar } from '../image/sidecars.ts'
import { pause } from '../host/watch.ts'

export interface DroppedFile {
  readonly stamp: FileStamp
  /** Lower case; null until it is known. */
  readonly sha256: string | null
  /** Why it is not offered, in words; null where it is, or will be. */
  readonly refusal: string | null
  /** Of the hashing, 0 to 1. */
  readonly progress: number
}

export interface DroppedFiles extends AsyncDisposable {
  /** By name; what is no image and does not look like one is left out. */
  list(): readonly DroppedFile[]
  find(name: string): DroppedFile | null
  /** For reading the version that was hashed; a Fault `not-found` where it is another one by now. */
  open(file: DroppedFile): Promise<FileHandle>
  /** Whether the file behind a handle is still that version. */
  isUnchanged(file: DroppedFile, handle: FileHandle): Promise<boolean>
  remove(name: string): Promise<void>
  /** Looks now instead of a little later. */
  scan(): Promise<void>
}

interface DroppedFilesDependencies {
  readonly folder: string
  /** Keeps digests across restarts. */
  readonly records: Storage
  /** Milliseconds without a change after which a file counts as whole. */
  readonly settleMs?: number
  readonly scanMs?: number
  readonly log: { warn(message: string): void }
}

interface Seen {
  stamp: FileStamp
  /** On the clock of performance.now(). */
  since: number
  sha256: string | null
  refusal: string | null
  progress: number
}

const MAX_FILES = 10_000

export async function createDroppedFiles(parts: DroppedFilesDependencies): Promise<DroppedFiles> {
  const { folder, settleMs = 3000, scanMs = 5000, log } = parts
  await makeFolder(folder)
  const seen = new Map<string, Seen>()
  const digests = createDigests(parts.records)
  const closing = new AbortController()
  let scanning: Promise<void> | null = null
  let hashing: Promise<void> = Promise.resolve()
  let isHashing = false
  let again: NodeJS.Timeout | undefined

  async function look() {
    const names = (await readdir(folder))
      .filter((name) => !name.startsWith('.'))
      .slice(0, MAX_FILES)
    for (const name of names) await lookAt(name)
    const here = new Set(names)
    for (const name of seen.keys()) if (!here.has(name)) seen.delete(name)
    if (!isHashing) startHashing()
    lookAgain()
  }

  /** As soon as what was copied just now may count as whole. */
  function lookAgain() {
    clearTimeout(again)
    const isUnsettled = [...seen.values()].some(
      ({ sha256, refusal, since }) =>
        sha256 === null && refusal === null && performance.now() - since < settleMs,
    )
    if (isUnsettled && !closing.signal.aborted) again = setTimeout(scan, settleMs).unref()
  }

  async function lookAt(name: string) {
    const reason = whyNotAnImage(name)
    const stamp = reason === '' ? null : await readStamp(folder, name)
    if (stamp === null) {
      seen.delete(name)
      return
    }
    const known = seen.get(name)
    if (known === undefined || !isSameStamp(known.stamp, stamp)) {
      const sha256 = reason === null ? await digests.find(stamp) : null
      seen.set(name, { stamp, since: performance.now(), sha256, refusal: reason, progress: 0 })
    }
    const file = seen.get(name)
    if (file !== undefined && file.sha256 !== null) file.refusal = await compare(file)
  }

  async function compare({ stamp, sha256 }: Seen): Promise<string | null> {
    try {
      const expected = await readSidecar(join(folder, stamp.name))
      if (expected === null || expected === sha256) return null
      return `its digest is ${sha256}, but ${stamp.name}.sha256 says ${expected}`
    } catch (thrown) {
      if (thrown instanceof Fault) return thrown.message
      throw thrown
    }
  }

  /** One file at a time, so that disks are read in order. */
  function startHashing() {
    isHashing = true
    hashing = hashAll().finally(() => {
      isHashing = false
    })
  }

  async function hashAll() {
    for (let next = findSettled(); next !== undefined; next = findSettled()) {
      if (closing.signal.aborted) return
      try {
        await hash(next)
      } catch (thrown) {
        next.refusal = `cannot be read: ${renderError(thrown)}`
      }
    }
  }

  const findSettled = () =>
    [...seen.values()].find(
      ({ sha256, refusal, since }) =>
        sha256 === null && refusal === null && performance.now() - since >= settleMs,
    )

  async function hash(file: Seen) {
    const { stamp } = file
    await using handle = await openStamped(folder, stamp)
    const sha256 = await hashFile(handle, closing.signal, (bytes) => {
      file.progress = bytes / stamp.sizeBytes
    })
    if (sha256 === null) return
    const after = await readStamp(folder, stamp.name)
    // It changed meanwhile: the next look finds it new.
    if (after === null || !isSameStamp(after, stamp)) {
      file.since = performance.now()
      return
    }
    await digests.save(stamp, sha256)
    file.sha256 = sha256
    file.refusal = await compare(file)
  }

  function scan() {
    scanning ??= look()
      .catch((thrown: unknown) => log.warn(`${folder} cannot be read: ${renderError(thrown)}`))
      .finally(() => {
        scanning = null
      })
    return scanning
  }

  const timer = setInterval(scan, scanMs)
  timer.unref()
  const watcher = startWatching(folder, () => void pause(200).then(scan))
  await scan()

  return {
    list: () => [...seen.values()].toSorted((a, b) => (a.stamp.name < b.stamp.name ? -1 : 1)),
    find: (name) => seen.get(name) ?? null,
    open: ({ stamp }) => openStamped(folder, stamp),
    isUnchanged: ({ stamp }, handle) => isStill(stamp, handle),
    async remove(name) {
      if (!seen.delete(name)) return
      await unlink(join(folder, name))
    },
    scan,
    async [Symbol.asyncDispose]() {
      closing.abort()
      clearInterval(timer)
      clearTimeout(again)
      watcher?.close()
      await scanning
      await hashing
    },
  }
}

/** Only makes it quicker: some file systems tell nothing. */
function startWatching(folder: string, tell: () => void) {
  try {
    const watcher = watchFolder(folder, { persistent: false }, tell)
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return null
  }
}
