/** The image catalog of the cache service: fetched, kept across restarts, never waited for. */
import type { CatalogSnapshot } from '../core/catalog.ts'

export interface Catalog {
  /** What is known now; never waits. */
  snapshot(): CatalogSnapshot
  /** Fetches now; the answer is the new snapshot, with `error` set when it could not be had. */
  refresh(): Promise<CatalogSnapshot>
}
