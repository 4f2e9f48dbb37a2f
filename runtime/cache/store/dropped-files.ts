/** Image files that people put into the cache's folder: offered once they are complete and hashed. */
import { FORMATS, detectFormat } from '#engine/image/rules/format.ts'
import { watch as watchFolder } from 'node:fs'
import { type FileHandle, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Storage } from 'unstorage'
import { type FileStamp, isSameStamp, whyNotAnImage } from '#engine/catalog/rules/cache-entry.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { makeFolder, moveNewFile, removeName, syncFolder } from '#kit/host/folders.ts'
import { hashStart } from '#kit/host/partial-files.ts'
import {
  createDigests,
  type FileDigests,
  isStill,
  openStamped,
  readStamp,
} from '#cache/blobs/blobs.ts'
import type { IndexChecks } from '#engine/image/frame/frame-check.ts'
import { checkEnd, checkStart } from '#engine/image/image-inspection.ts'
import { readSidecar } from '#engine/image/sources/source.ts'
import { pause } from '#kit/host/watch.ts'

export interface DroppedFile {
  readonly stamp: FileStamp
  /** Lower case; null: not hashed yet. */
  readonly sha256: string | null
  /** Lower case; null: not in frames, or not compared yet. */
  readonly indexSha256: string | null
  /** Null: it is offered, or will be. */
  readonly refusal: string | null
  /** Part that was read, 0 to 1. */
  readonly progress: number
}

export type DroppedFiles = Awaited<ReturnType<typeof createDroppedFiles>>

interface DroppedFilesDependencies {
  readonly folder: string
  readonly records: Storage
  readonly indexes: IndexChecks
  /** Milliseconds without a change after which a file counts as complete. */
  readonly settleMs?: number
  readonly scanMs?: number
  /** After each scan, and after a file was read. */
  readonly onChange: () => void
  readonly log: { warn(message: string): void }
}

type SeenFile = { -readonly [Field in keyof DroppedFile]: DroppedFile[Field] } & {
  /** Of performance.now(): when this stamp was first seen. */
  since: number
}

interface Scanned {
  readonly folder: string
  readonly settleMs: number
  readonly seen: Map<string, SeenFile>
  readonly digests: ReturnType<typeof createDigests>
  readonly indexes: IndexChecks
  readonly onChange: () => void
  readonly log: { warn(message: string): void }
  readonly signal: AbortSignal
}

const MAX_FILES = 10_000

export async function createDroppedFiles(parts: DroppedFilesDependencies) {
  const { folder, settleMs = 3000, scanMs = 5000, log } = parts
  await makeFolder(folder)
  const seen = new Map<string, SeenFile>()
  const closing = new AbortController()
  const { signal } = closing
  const scanned = { ...parts, settleMs, seen, digests: createDigests(parts.records), signal }
  let scanning: Promise<void> | null = null
  let hashing: Promise<void> | null = null
  let again: NodeJS.Timeout | undefined

  async function inspectFolder() {
    await readNames(scanned)
    hashing ??= hashAll(scanned).finally(() => {
      hashing = null
    })
    // As soon as a file just copied may count as complete.
    clearTimeout(again)
    const isUnsettled = [...seen.values()].some((file) => isOpen(file) && !isSettled(scanned, file))
    if (isUnsettled && !signal.aborted) again = setTimeout(scan, settleMs).unref()
  }

  function scan() {
    scanning ??= inspectFolder()
      .catch((thrown: unknown) => log.warn(`${folder} cannot be read: ${renderError(thrown)}`))
      .finally(() => {
        scanning = null
      })
    return scanning
  }

  const timer = setInterval(scan, scanMs).unref()
  const watcher = startWatching(folder, () => void pause(200).then(scan))
  await scan()

  return {
    /** By name; without files that are no image and do not look like one. */
    list: (): readonly DroppedFile[] =>
      [...seen.values()].toSorted((a, b) => (a.stamp.name < b.stamp.name ? -1 : 1)),
    find: (name: string): DroppedFile | null => seen.get(name) ?? null,
    /** Rejects with a Fault `not-found` where the file has changed. */
    open: ({ stamp }: DroppedFile) => openStamped(folder, stamp),
    isUnchanged: ({ stamp }: DroppedFile, handle: FileHandle) => isStill(stamp, handle),
    async remove(name: string) {
      if (!seen.has(name)) return
      await removeName(join(folder, name))
      // A running scan would list it again.
      await scanning
      seen.delete(name)
      parts.onChange()
    },
    /** The caller computed `digests`. Rejects with a Fault `conflict` if the name is taken. */
    async adopt(path: string, name: string, digests: FileDigests) {
      await adoptFile(scanned, path, name, digests)
      await scanning
      await scan()
    },
    async scan() {
      // A running scan may have missed the latest change.
      await scanning
      await scan()
    },
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

async function adoptFile(scanned: Scanned, path: string, name: string, digests: FileDigests) {
  const stamp = await readStamp(dirname(path), basename(path))
  if (stamp === null) throw new Fault('not-found', `${name} was removed just now`)
  // Before the scan sees the file, so that it is not hashed again.
  await scanned.digests.save({ ...stamp, name }, digests)
  await moveNewFile(path, join(scanned.folder, name))
  await syncFolder(scanned.folder)
}

const isOpen = ({ sha256, refusal }: SeenFile) => sha256 === null && refusal === null

const isSettled = ({ settleMs }: Scanned, { since }: SeenFile) =>
  performance.now() - since >= settleMs

async function readNames(scanned: Scanned) {
  const { folder, seen, onChange } = scanned
  const names = (await readdir(folder)).filter((name) => !name.startsWith('.')).slice(0, MAX_FILES)
  for (const name of names) await inspectFile(scanned, name)
  const here = new Set(names)
  for (const name of seen.keys()) if (!here.has(name)) seen.delete(name)
  onChange()
}

async function inspectFile(scanned: Scanned, name: string) {
  const { folder, seen, digests } = scanned
  const refusal = whyNotAnImage(name)
  const stamp = refusal === '' ? null : await readStamp(folder, name)
  if (stamp === null) {
    seen.delete(name)
    return
  }
  let file = seen.get(name)
  if (file === undefined || !isSameStamp(file.stamp, stamp)) {
    const known = refusal === null ? await digests.find(stamp) : null
    file = createSeen(stamp, known, refusal)
    seen.set(name, file)
    if (known?.checkedIndex) await recall(scanned, stamp, known.checkedIndex)
  }
  if (file.sha256 !== null) file.refusal = await compare(folder, file)
}

/** Best effort: only the shown size depends on it. */
async function recall({ folder, indexes, log }: Scanned, stamp: FileStamp, checkedIndex: string) {
  try {
    await using handle = await openStamped(folder, stamp)
    await indexes.recall(handle, { ...stamp, checkedIndex })
  } catch (thrown) {
    log.warn(`${stamp.name}: ${renderError(thrown)}`)
  }
}

const createSeen = (
  stamp: FileStamp,
  known: FileDigests | null,
  refusal: string | null,
): SeenFile => ({
  stamp,
  since: performance.now(),
  sha256: known?.sha256 ?? null,
  indexSha256: known?.checkedIndex ?? null,
  refusal,
  progress: 0,
})

function isFramed({ name }: FileStamp): boolean {
  const format = detectFormat(name)
  return format !== null && FORMATS[format].entered === 'at-frames'
}

async function compare(
  folder: string,
  { stamp, sha256 }: Pick<SeenFile, 'stamp' | 'sha256'>,
): Promise<string | null> {
  try {
    const expected = await readSidecar(join(folder, stamp.name))
    if (expected === null || expected === sha256) return null
    return `its digest is ${sha256}, but ${stamp.name}.sha256 says ${expected}`
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown.message
    throw thrown
  }
}

/** One at a time, so that disks are read in order. */
async function hashAll(scanned: Scanned) {
  const find = () =>
    [...scanned.seen.values()].find((file) => isOpen(file) && isSettled(scanned, file))
  for (let next = find(); next !== undefined; next = find()) {
    try {
      await hash(scanned, next)
    } catch (thrown) {
      if (scanned.signal.aborted) return
      next.refusal = explain(thrown)
      scanned.onChange()
    }
  }
}

function explain(thrown: unknown): string {
  const code = thrown instanceof Fault ? thrown.code : null
  if (code === 'image-broken') return `incomplete or damaged: ${renderError(thrown)}`
  if (code === 'plan-refused') return renderError(thrown)
  return `cannot be read: ${renderError(thrown)}`
}

async function hash({ folder, digests, indexes, signal, onChange }: Scanned, file: SeenFile) {
  const { stamp } = file
  await using handle = await openStamped(folder, stamp)
  const format = detectFormat(stamp.name)
  await checkStart(handle, { ...stamp, format })
  const sha256 = await digestOf(handle, file, signal)
  await checkEnd(handle, { ...stamp, format }, signal)
  const onProgress = (part: number) => {
    file.progress = part
  }
  const order = { ...stamp, signal, onProgress }
  const indexSha256 = isFramed(stamp) ? await indexes.check(handle, order) : null
  const after = await readStamp(folder, stamp.name)
  // Changed meanwhile: the next scan takes it as new.
  if (after === null || !isSameStamp(after, stamp)) {
    file.since = performance.now()
    return
  }
  await digests.save(stamp, { sha256, checkedIndex: indexSha256 })
  const refusal = await compare(folder, { stamp, sha256 })
  file.sha256 = sha256
  file.indexSha256 = indexSha256
  file.refusal = refusal
  onChange()
}

async function digestOf(handle: FileHandle, file: SeenFile, signal: AbortSignal): Promise<string> {
  const { sizeBytes } = file.stamp
  const sum = await hashStart(handle, sizeBytes, signal, (bytes) => {
    file.progress = bytes / sizeBytes
  })
  return sum.digest('hex')
}

/** Only quicker than scans: some file systems report no changes. */
function startWatching(folder: string, onChange: () => void) {
  try {
    const watcher = watchFolder(folder, { persistent: false }, onChange)
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return null
  }
}
