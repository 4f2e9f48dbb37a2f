/** Opens catalogs for the wizard: from a path, a web server, a registry or our own server. */
import {
  type CatalogRefusal,
  type LoadedCatalog,
  offerImages,
  refusalOf,
} from './rules/catalog-source.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type ManifestOptions, readManifest } from './catalog-manifests.ts'

/** Bad entries become flaws; refused where there is no catalog. At most 30 seconds and 4 MiB. */
export function createCatalogSources(options: Pick<ManifestOptions, 'env' | 'timeoutMs'>) {
  return async function loadCatalogSource(
    source: string,
    signal?: AbortSignal,
  ): Promise<Result<LoadedCatalog, CatalogRefusal>> {
    try {
      const manifest = await readManifest(source, { ...options, signal })
      return accept(offerImages(manifest.name, manifest, manifest.folder))
    } catch (thrown) {
      if (thrown instanceof Fault) return refuse(refusalOf(thrown))
      throw thrown
    }
  }
}
