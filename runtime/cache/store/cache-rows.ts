/** Lists everything that the cache holds, one row per image with its state. */
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import {
  blobKeyOf,
  type CacheEntry,
  fileSource,
  keyOf,
  publicFields,
  type CatalogFields,
} from '#engine/catalog/rules/cache-entry.ts'
import { decideArch, decideFormat } from '#engine/catalog/rules/catalog.ts'
import type { DecodedMemory } from '#engine/image/frame/frame-check.ts'
import type { BlobIndex, StoredSource } from '#cache/blobs/blobs.ts'
import type { Download, Downloads } from './downloads.ts'
import type { DroppedFile, DroppedFiles } from './dropped-files.ts'
import type { Pins } from './pins.ts'

export type ImageState =
  | 'ready'
  | 'receiving'
  | 'queued'
  | 'checking' // a dropped file that is being copied or read, a download that is being decoded
  | 'failed'
  | 'absent' // known, and not here

export interface CacheRow {
  /** Never has a password. */
  readonly entry: CatalogFields
  readonly kind: 'source' | 'file'
  /** Empty: it is no dropped file. */
  readonly fileName: string
  readonly state: ImageState
  readonly error: string | null
  readonly download: Download | null
  /** 0 to 1; null: unknown. */
  readonly progress: number | null
  readonly isPinned: boolean
  /** Null: no server reports it. */
  readonly machines: number | null
  /** ISO time; null: not downloaded. */
  readonly addedAt: string | null
  /** ISO time of the latest look at the source; null: never. */
  readonly lookedAt: string | null
  /** ISO time at which the source was seen to have changed; null: it has not. */
  readonly movedAt: string | null
  /** Milliseconds since the epoch; null: never, or not counted. */
  readonly usedAt: number | null
}

interface RowDependencies {
  readonly index: BlobIndex
  readonly downloads: Downloads
  readonly dropped: Pick<DroppedFiles, 'list'>
  readonly used: ReadonlyMap<string, number>
  readonly decoded: Pick<DecodedMemory, 'find'>
  readonly pins: Pick<Pins, 'has' | 'countMachines'>
}

/** Entries, then dropped files, each in natural order (2.4.2 before 2.4.10). */
export function listRows(parts: RowDependencies): readonly CacheRow[] {
  const sources = parts.index.entries().map((entry) => rowOfEntry(parts, entry))
  const names = new Set(sources.map(({ entry }) => entry.name))
  const files = parts.dropped.list().map((file) => rowOfFile(parts, file, names))
  return [...sources.toSorted(byName), ...files.toSorted(byName)]
}

const keyOfName = ({ entry }: CacheRow) => naturalKey(entry.name)

function byName(one: CacheRow, other: CacheRow): number {
  const [a, b] = [keyOfName(one), keyOfName(other)]
  return a < b ? -1 : Number(a > b)
}

function rowOfEntry(parts: RowDependencies, entry: CacheEntry): CacheRow {
  const { index, downloads, used } = parts
  const key = keyOf(entry)
  const stored = index.find(key)
  const download = downloads.find(key)
  const failure = downloads.failureOf(key)
  return {
    entry: { ...describe(entry), ...bytesOf(parts, entry, stored, download) },
    kind: 'source',
    fileName: '',
    state: stateOf(stored !== null, download, failure !== null),
    error: failure === null ? null : [failure.message, failure.hint].filter(Boolean).join('. '),
    download,
    progress: progressOf(download),
    ...usesOf(parts, entry.src),
    addedAt: stored?.fetchedAt ?? null,
    lookedAt: stored?.lookedAt ?? null,
    movedAt: stored?.movedAt ?? null,
    usedAt: stored === null ? null : (used.get(stored.sha256) ?? null),
  }
}

function describe(entry: CacheEntry): CatalogFields {
  const names = [entry.name, entry.resolved_src, entry.src]
  const format = decideFormat(entry.format, names)
  return {
    ...publicFields(entry),
    format: format === '' ? null : format,
    arch: decideArch(entry.arch, names),
  }
}

/** What was stored counts more than what the entry says. */
const bytesOf = (
  parts: RowDependencies,
  entry: CacheEntry,
  stored: StoredSource | null,
  download: Download | null,
) => ({
  sha256: stored?.sha256 ?? entry.sha256,
  ...(stored === null ? {} : { index_sha256: stored.checkedIndex }),
  ...decodedOf(parts, stored?.checkedIndex ?? null),
  size_bytes: stored?.sizeBytes ?? download?.growth.total ?? entry.size_bytes,
})

/** From its index, once that was verified. */
function decodedOf({ decoded }: RowDependencies, checkedIndex: string | null) {
  const image = checkedIndex === null ? null : decoded.find(checkedIndex)
  return image === null ? {} : { raw_size_bytes: image.sizeBytes, raw_sha256: image.sha256 }
}

/** A stored image stays ready while a newer version is downloaded. */
function stateOf(isStored: boolean, download: Download | null, hasFailed: boolean): ImageState {
  if (isStored) return 'ready'
  if (download?.isQueued === true) return 'queued'
  if (download !== null) return download.checked === null ? 'receiving' : 'checking'
  return hasFailed ? 'failed' : 'absent'
}

function progressOf(download: Download | null): number | null {
  if (download === null || download.checked !== null) return download?.checked ?? null
  const { total, bytes } = download.growth
  return total === null || total === 0 ? null : bytes / total
}

function rowOfFile(
  parts: RowDependencies,
  file: DroppedFile,
  taken: ReadonlySet<string>,
): CacheRow {
  const { name: fileName, sizeBytes, mtimeNs } = file.stamp
  const src = fileSource(fileName)
  const names = [fileName]
  const isOffered = file.sha256 !== null && file.refusal === null
  return {
    entry: {
      name: taken.has(fileName) ? `${fileName} (file)` : fileName,
      src,
      resolved_src: null,
      format: decideFormat(null, names) || null,
      arch: decideArch(null, names),
      sha256: file.sha256,
      ...(file.indexSha256 === null ? {} : { index_sha256: file.indexSha256 }),
      ...decodedOf(parts, file.indexSha256),
      size_bytes: sizeBytes,
      description: null,
      netboot_ref: null,
    },
    kind: 'file',
    fileName,
    state: file.refusal !== null ? 'failed' : isOffered ? 'ready' : 'checking',
    error: file.refusal,
    download: null,
    progress: isOffered || file.refusal !== null ? null : file.progress,
    ...usesOf(parts, src),
    addedAt: new Date(Number(BigInt(mtimeNs) / 1_000_000n)).toISOString(),
    lookedAt: null,
    movedAt: null,
    usedAt: null,
  }
}

function usesOf({ pins }: RowDependencies, src: string) {
  const ref = blobKeyOf(src) ?? ''
  return { isPinned: pins.has(ref), machines: pins.countMachines(ref) }
}
