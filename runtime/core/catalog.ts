/** The image catalog as this server knows it: a snapshot of what a cache service offers. */

/** One image. `src` is its identity (see `ref.ts`), `url` what a machine can fetch it from. */
export interface CatalogEntry {
  /** sha256 of the canonical source, 64 hexadecimal digits. */
  readonly ref: string
  readonly name: string
  /** As listed by the cache service. */
  readonly src: string
  /** Where a machine gets the bytes: the cache's own address of the blob, else the source. */
  readonly url: string
  /** `img.zst`…; empty when it cannot be told. */
  readonly format: string
  readonly arch: string | null
  /** Of the stored bytes; null when not known. */
  readonly sha256: string | null
  readonly sizeBytes: number | null
  readonly description: string | null
}

/** An entry that was left out, and why. */
export interface SkippedEntry {
  readonly name: string
  readonly reason: string
}

export interface CatalogSnapshot {
  readonly entries: readonly CatalogEntry[]
  readonly skipped: readonly SkippedEntry[]
  /** ISO time of the last good fetch; null when there never was one. */
  readonly fetchedAt: string | null
  /** Why the newest attempt failed; null when it did not. */
  readonly error: string | null
}
