/** What images start from that can be read only from their start: found out once, when they are here. */
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Storage } from 'unstorage'
import { IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { readImageBoot } from '#engine/bootable/image-boot.ts'
import { type BootRecord, BootRecordSchema } from '#engine/bootable/rules/boot-record.ts'
import { readStreamedBoot } from '#engine/bootable/streamed-boot.ts'
import type { Decoders } from '#engine/image/formats.ts'
import { FORMATS } from '#engine/image/rules/format.ts'
import type { SeekableSource } from '#engine/image/sources/source.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { Changes } from '#kit/host/changes.ts'
import { removeName } from '#kit/host/folders.ts'
import { selectRecords } from '#kit/host/records.ts'
import type { CacheRow } from './cache-rows.ts'

interface BootFactsDependencies {
  readonly records: Storage
  readonly changes: Pick<Changes, 'listen'>
  /** The cache's own folder. */
  readonly data: string
  readonly decoders: Pick<Decoders, 'open'>
  rows(): readonly CacheRow[]
  /** Rejects where it is another version; `isStill`: it has not changed since. */
  open(
    row: CacheRow,
    sha256: string,
  ): Promise<{ readonly handle: FileHandle; isStill(): Promise<boolean> }>
  /** For the scratch file; rejects where so many bytes do not fit. */
  reserve(remaining: () => number): Promise<void>
  release(): void
  /** Milliseconds after which an image that could not be read is read again; smaller in tests. */
  readonly againMs?: number | undefined
  readonly log: { warn(message: string): void }
}

const CHUNK_BYTES = 1024 * 1024
const AGAIN_MS = 600_000

export async function createBootFacts(parts: BootFactsDependencies) {
  const { records, changes, data, decoders, rows, open, log } = parts
  const { reserve, release, againMs = AGAIN_MS } = parts
  const stored = selectRecords(records, 'boot', BootRecordSchema)
  const known = new Map<string, BootRecord>(await stored.list())
  /** When it is read again, by performance.now(); Infinity: its bytes are damaged. */
  const failed = new Map<string, number>()
  const scratch = join(data, 'boot-look')
  const closing = new AbortController()
  let isDue = false
  let working: Promise<void> | null = null

  async function learn(row: CacheRow, sha256: string, format: ImageFormat) {
    try {
      const opened = await open(row, sha256)
      await using handle = opened.handle
      const source = sourceOf(handle, row.entry.name, (await handle.stat()).size)
      const boot = (await readImageBoot(source, format)) ?? (await readAll(source, format))
      if (!(await opened.isStill()))
        throw new Fault('source-broken', 'it has changed while it was read')
      const record = { boot }
      await stored.write(sha256, record)
      known.set(sha256, record)
    } catch (thrown) {
      const isBroken = thrown instanceof Fault && thrown.code === 'image-broken'
      failed.set(sha256, isBroken ? Infinity : performance.now() + againMs)
      if (!closing.signal.aborted)
        log.warn(`${row.entry.name}: what it starts from is not known: ${renderError(thrown)}`)
    }
  }

  const isTimeFor = (sha256: string) => performance.now() >= (failed.get(sha256) ?? 0)

  async function readAll(source: SeekableSource, format: ImageFormat) {
    await using blocks = await decoders.open(source, format)
    const { signal } = closing
    return await readStreamedBoot(blocks, scratch, { signal, reserve }).finally(async () => {
      release()
      await removeName(scratch)
    })
  }

  async function work() {
    while (isDue && !closing.signal.aborted) {
      isDue = false
      const here = rows().flatMap((row) => toWanted(row) ?? [])
      for (const { row, sha256, format } of here)
        if (!known.has(sha256) && isTimeFor(sha256) && !closing.signal.aborted)
          await learn(row, sha256, format)
      await forgetOthers(new Set(here.map(({ sha256 }) => sha256)))
    }
  }

  async function forgetOthers(here: ReadonlySet<string>) {
    for (const sha256 of failed.keys()) if (!here.has(sha256)) failed.delete(sha256)
    for (const sha256 of known.keys()) {
      if (here.has(sha256)) continue
      known.delete(sha256)
      await stored.remove(sha256)
    }
  }

  function begin() {
    isDue = true
    working ??= work()
      .catch((thrown: unknown) => log.warn(`what images start from: ${renderError(thrown)}`))
      .finally(() => {
        working = null
        if (isDue && !closing.signal.aborted) begin()
      })
  }

  const stop = changes.listen(begin, ['catalog'])
  begin()
  return {
    /** Null: not yet, it could not be read, or its format is read at any place. */
    find: (sha256: string): BootRecord | null => known.get(sha256) ?? null,
    async [Symbol.asyncDispose]() {
      stop()
      closing.abort()
      await working
    },
  }
}

/** Null: not here yet, or of a format that servers read at any place. */
function toWanted(row: CacheRow) {
  const { sha256 } = row.entry
  const format = IMAGE_FORMATS.find((each) => each === row.entry.format)
  if (row.state !== 'ready' || sha256 === null || format === undefined) return null
  return FORMATS[format].entered.startsWith('at-') ? { row, sha256, format } : null
}

const sourceOf = (handle: FileHandle, name: string, sizeBytes: number): SeekableSource => ({
  name,
  fileName: name,
  path: null,
  url: null,
  sizeBytes,
  readAt: async (into, offset) => (await handle.read(into, 0, into.length, offset)).bytesRead,
  async *stream(from = 0) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    for (let at = from; ;) {
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield chunk.subarray(0, bytesRead)
    }
  },
  [Symbol.asyncDispose]: () => Promise.resolve(),
})
