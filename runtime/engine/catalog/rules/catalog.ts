/** The image catalog in the server's memory: a snapshot of what a cache service offers. */
import { createHash } from 'node:crypto'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { detectFormat, isTarballName } from '#engine/image/rules/format.ts'
import { accept, type Result } from '#kit/foundation/result.ts'
import { canonicaliseSource } from '#kit/net/rules/image-location.ts'

/** `src` is its identity (see `refOf`), `url` what a machine fetches it from. */
export interface CatalogEntry {
  /** sha256 of the canonical source, 64 hexadecimal digits. */
  readonly ref: string
  readonly name: string
  readonly src: string
  /** The cache's source, where that is not `src`. */
  readonly resolvedSrc: string | null
  /** The cache's address of the blob, else the source. */
  readonly url: string
  /** `img.zst`…; empty: unknown. */
  readonly format: string
  readonly arch: string | null
  /** Of the stored bytes; null: unknown. */
  readonly sha256: string | null
  /** Where somebody vouches for it; absent or null: unknown. */
  readonly indexSha256?: string | null
  readonly sizeBytes: number | null
  /** Bytes of the decoded image; absent or null: unknown. */
  readonly rawSizeBytes?: number | null
  /** Of the decoded image; absent or null: unknown. */
  readonly rawSha256?: string | null
  /** ISO time when the cache got it; absent: unknown. */
  readonly addedAt?: string
  readonly description: string | null
  readonly anyContent?: boolean
}

declare const brand: unique symbol
type ImageRef = string & { readonly [brand]: 'ImageRef' }

/** `bty_image_ref`, `ImageEntry.ref`: 64 hexadecimal digits. */
export function refOf(source: string): Result<ImageRef, 'not-a-source'> {
  const canonical = canonicaliseSource(source)
  if (!canonical.ok) return canonical
  return accept(createHash('sha256').update(canonical.value).digest('hex') as ImageRef)
}

export interface SkippedEntry {
  readonly name: string
  readonly reason: string
}

export interface CatalogSnapshot {
  readonly entries: readonly CatalogEntry[]
  readonly skipped: readonly SkippedEntry[]
  /** ISO time of the last good fetch; null: never. */
  readonly fetchedAt: string | null
  /** Of the newest attempt; null: it succeeded. */
  readonly error: string | null
}

/** A row of `GET /images` ("ImageEntry"). A dropped file's `src` is no address. */
export function renderImageEntry(entry: CatalogEntry) {
  const { name, format, sizeBytes, src, resolvedSrc, ref, sha256, arch } = entry
  const isAddress = !src.toLowerCase().startsWith('file:')
  return {
    name,
    format,
    size_bytes: sizeBytes ?? 0,
    url: isAddress ? src : (resolvedSrc ?? src),
    ref,
    sha_short: sha256?.slice(0, 12) ?? null,
    arch,
  }
}

/** Tarballs and boot bundles are listed, but cannot be flashed. */
export const isFlashable = ({ format }: Pick<CatalogEntry, 'format'>): boolean =>
  IMAGE_FORMATS.some((known) => known === format)

/** The stated one, else by the names; empty: unknown. */
export function decideFormat(format: string | null, names: readonly (string | null)[]): string {
  if (format !== null) return format
  const paths = names.map((name) => pathOf(name ?? ''))
  const detected = paths.map(detectFormat).find((found) => found !== null)
  return detected ?? paths.map(tarballFormat).find((found) => found !== '') ?? ''
}

/** Names may hold anything; an address's path ends where the query begins. */
const pathOf = (text: string) =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? (text.split(/[?#]/, 1)[0] ?? '') : text

const tarballFormat = (name: string) =>
  isTarballName(name) ? (/\.(tar(\.\w+)?|t\w+)$/i.exec(name)?.[1]?.toLowerCase() ?? '') : ''

const ARCHES = [
  [/(^|[^a-z0-9])(x86[-_]64|amd64|x64)($|[^a-z0-9])/i, 'x86_64'],
  [/(^|[^a-z0-9])(arm64|aarch64)($|[^a-z0-9])/i, 'arm64'],
  [/(^|[^a-z0-9])riscv64($|[^a-z0-9])/i, 'riscv64'],
] as const

/** The stated one, else by the names; null: unknown. */
export function decideArch(arch: string | null, names: readonly (string | null)[]): string | null {
  if (arch !== null) return arch
  const hits = names.map((name) => ARCHES.find(([words]) => words.test(name ?? ''))?.[1])
  return hits.find((hit) => hit !== undefined) ?? null
}
