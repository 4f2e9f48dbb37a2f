/** Library entry points of the catalog module: which images a catalog offers, and from where. */
import { type LoadedCatalog, offerImages } from '../engine/catalog/rules/catalog-source.ts'
import { parseManifest, renderFlaw } from '../engine/catalog/rules/manifest.ts'
import { createCatalogSources } from '../engine/catalog/catalog-sources.ts'
import { readManifestText } from '../engine/catalog/catalog-manifests.ts'
import { LibraryError, rethrowAs } from './library-error.ts'

export type { CatalogImage } from '../engine/catalog/rules/catalog-source.ts'

/**
 * What a catalog offers: `images`, each with the `location` that `makePlan` takes, and `flaws`, the
 * entries that were left out, with `line` (from 1, or null) and `reason`.
 */
export type Catalog = LoadedCatalog

/** No catalog: it is unavailable (`input-missing`), it is not one (`input-invalid`), or `cancelled`. */
export class CatalogError extends LibraryError {
  override readonly name = 'CatalogError'
}

export interface CatalogOptions {
  /** Ends it at once. */
  readonly signal?: AbortSignal
}

/**
 * Loads a catalog ("Catalog manifest") from a path, a `file://`, `http(s)://` or `oras://` address; a
 * server's bare address means its `/catalog.toml`. At most 4 MiB and 30 seconds. Rejects with a
 * CatalogError that names the place, and the line where one is at fault.
 */
export async function loadSource(source: string, options: CatalogOptions = {}): Promise<Catalog> {
  const loaded = await createCatalogSources({ env: process.env })(source, options.signal)
  if (loaded.ok) return loaded.value
  const { code, message, hint } = loaded.refusal
  throw new CatalogError(code, message, { hint: hint ?? undefined })
}

/**
 * Reads a catalog that is at hand, as text or as UTF-8. `name`: what to call it in messages; `folder`:
 * where `file://` sources are relative to, absent: such sources are left out. Throws a CatalogError.
 */
export function loadBytes(
  bytes: Uint8Array | string,
  {
    name = 'catalog',
    folder = null,
  }: { readonly name?: string; readonly folder?: string | null } = {},
): Catalog {
  const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')
  const manifest = parseManifest(text)
  if (manifest.ok) return offerImages(name, manifest.value, folder)
  throw new CatalogError('input-invalid', `${name}: ${renderFlaw(manifest.refusal)}`)
}

/** The text of a catalog as UTF-8, from wherever `loadSource` finds it; rejects with a CatalogError. */
export async function fetchBytes(
  source: string,
  { signal }: CatalogOptions = {},
): Promise<Uint8Array> {
  const reading = readManifestText(source, { env: process.env, signal })
  const { text } = await reading.catch(rethrowAs(CatalogError))
  return new TextEncoder().encode(text)
}
