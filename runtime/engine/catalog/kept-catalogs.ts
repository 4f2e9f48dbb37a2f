/** The last good catalog, kept in the state directory for the next start ("active manifest"). */
import { open } from 'node:fs/promises'
import { parseKeptCatalog, renderKeptCatalog, type KeptCatalog } from './rules/kept-catalog.ts'
import { replaceFile } from '#kit/host/atomic-file.ts'

const MAX_BYTES = 64 * 1024 * 1024

export type KeptCatalogs = ReturnType<typeof createKeptCatalogs>

export function createKeptCatalogs(path: string) {
  return {
    /** Null: none that can be read; it is fetched again. */
    async read(): Promise<KeptCatalog | null> {
      try {
        await using handle = await open(path, 'r')
        const { size } = await handle.stat()
        return size > MAX_BYTES ? null : parseKeptCatalog(await handle.readFile('utf8'))
      } catch {
        return null // Whatever is wrong with the copy: the cache service has the original.
      }
    },
    async write(kept: KeptCatalog): Promise<void> {
      const text = renderKeptCatalog(kept)
      if (text !== null) await replaceFile(path, text)
    },
  }
}
