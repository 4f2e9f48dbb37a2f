/** The last good catalog, kept in the state directory for the next start. */
import { open } from 'node:fs/promises'
import { destr } from 'destr'
import { replaceFile } from './atomic-file.ts'

export interface KeptCatalog {
  /** The cache service's address; what was kept of one says nothing of another. */
  readonly base: string
  /** ISO time. */
  readonly fetchedAt: string
  readonly etag: string | null
  /** The answer as it came, so that a newer program reads it in its own way. */
  readonly text: string
}

export interface KeptCatalogs {
  /** Null where there is none, or none that can be read: it is fetched again. */
  read(): Promise<KeptCatalog | null>
  write(kept: KeptCatalog): Promise<void>
}

const MOST_BYTES = 64 * 1024 * 1024

/** `path`: `<state_dir>/catalog.json`. */
export function createKeptCatalogs(path: string): KeptCatalogs {
  return {
    async read() {
      try {
        await using handle = await open(path, 'r')
        const { size } = await handle.stat()
        return size > MOST_BYTES ? null : parseKept(destr(await handle.readFile('utf8')))
      } catch {
        return null // Whatever is wrong with the copy: the cache service has the original.
      }
    },
    write: (kept) => replaceFile(path, JSON.stringify(kept)),
  }
}

function parseKept(found: unknown): KeptCatalog | null {
  if (typeof found !== 'object' || found === null) return null
  const fields = new Map<string, unknown>(Object.entries(found))
  const [base, fetchedAt, text] = ['base', 'fetchedAt', 'text'].map((key) => fields.get(key))
  const etag = fields.get('etag')
  const isKept =
    typeof base === 'string' && typeof fetchedAt === 'string' && typeof text === 'string'
  return isKept ? { base, fetchedAt, text, etag: typeof etag === 'string' ? etag : null } : null
}
