/** Library entry points of the catalog module: which images a catalog offers, and from where. */
import { type LoadedCatalog, offerImages } from '#engine/catalog/rules/catalog-source.ts'
import { parseManifest, renderFlaw } from '#engine/catalog/rules/manifest.ts'
import { createCatalogSources, readManifestText } from '#engine/catalog/catalog-manifests.ts'
import { LibraryError, rethrowAs } from './library-error.ts'

export type { CatalogImage } from '#engine/catalog/rules/catalog-source.ts'

/**
 * A catalog that was read: `images` can be flashed (`location`, `format` and `sha256` go to `makePlan`
 * as they are), `flaws` are the entries that were left out, with their `line` (from 1; null: the whole
 * catalog) and the `reason`.
 */
export type Catalog = LoadedCatalog

/**
 * Why a catalog could not be read. `code` is `input-missing` (it is unavailable), `input-invalid` (it is
 * not a catalog, or its address is malformed) or `cancelled`; `hint` says how to fix it, where known.
 *
 * @example
 * ```ts
 * import { CatalogError, loadSource } from 'flasher-lab/catalog'
 *
 * try {
 *   await loadSource('./missing.toml')
 * } catch (error) {
 *   if (error instanceof CatalogError) console.log(error.code) // input-missing
 * }
 * ```
 */
export class CatalogError extends LibraryError {
  override readonly name = 'CatalogError'
}

/** What `loadSource` and `fetchBytes` may be given besides the source. */
export interface CatalogOptions {
  /** Aborting this ends the download at once, with a CatalogError whose `code` is `cancelled`. */
  readonly signal?: AbortSignal
}

/**
 * Reads a catalog and checks its entries. It may have at most 4 MiB and take 30 seconds.
 *
 * @param source - A path, or a `file://`, `http(s)://` or `oras://` address. A server's bare address
 *   means its `/catalog.toml`.
 * @param options - `signal` ends it early.
 * @returns The images that can be flashed, and the entries that were left out.
 * @throws {CatalogError} The catalog is unavailable or malformed as a whole; the message names the place,
 *   and the line where one is at fault. A bad entry alone is a flaw, not an error.
 *
 * @example
 * ```ts
 * import { loadSource } from 'flasher-lab/catalog'
 *
 * const { images, flaws } = await loadSource('http://flasher-server:8080')
 * for (const { name, location } of images) console.log(name, location) // debian https://h/debian.img.zst
 * for (const { line, reason } of flaws) console.warn(`line ${line}: ${reason}`)
 * ```
 */
export async function loadSource(source: string, options: CatalogOptions = {}): Promise<Catalog> {
  const loaded = await createCatalogSources({ env: process.env })(source, options.signal)
  if (loaded.ok) return loaded.value
  const { code, message, hint } = loaded.refusal
  throw new CatalogError(code, message, { hint: hint ?? undefined })
}

/**
 * Reads a catalog that the caller already has; opens no file and no connection.
 *
 * @param bytes - The catalog in TOML, as text or as UTF-8.
 * @param options - `name` is what messages call the catalog (default `catalog`). `folder` is the folder
 *   to which `file://` sources are relative; without it they are left out as flaws.
 * @returns The images that can be flashed, and the entries that were left out.
 * @throws {CatalogError} The text is not a catalog (`input-invalid`).
 *
 * @example
 * ```ts
 * import { loadBytes } from 'flasher-lab/catalog'
 *
 * const text = `version = 1
 * [[images]]
 * name = "debian"
 * src = "https://h/debian.img.zst"`
 * console.log(loadBytes(text).images[0]?.format) // img.zst
 * ```
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

/**
 * Downloads a catalog without reading what it says, for programs that keep or forward it.
 *
 * @param source - As for `loadSource`.
 * @param options - `signal` ends it early.
 * @returns The catalog's text as UTF-8, at most 4 MiB.
 * @throws {CatalogError} The catalog is unavailable, larger than 4 MiB, or `cancelled`.
 *
 * @example
 * ```ts
 * import { fetchBytes, loadBytes } from 'flasher-lab/catalog'
 *
 * const bytes = await fetchBytes('http://flasher-server:8080')
 * console.log(loadBytes(bytes).images.length) // 1
 * ```
 */
export async function fetchBytes(
  source: string,
  { signal }: CatalogOptions = {},
): Promise<Uint8Array> {
  const reading = readManifestText(source, { env: process.env, signal })
  const { text } = await reading.catch(rethrowAs(CatalogError))
  return new TextEncoder().encode(text)
}
