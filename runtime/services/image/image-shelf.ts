/** The images of a folder that a server offers: listed at most once a second, however many ask. */
import { realpath } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { isBareFileName } from '../../core/foundation/file-name.ts'
import type { ImageRow } from '../../core/image/image.ts'
import { makeFolder } from '../host/folders.ts'
import { clearUploads } from '../host/temporary-uploads.ts'
import { listImages } from './image-folder.ts'

export interface ImageShelf {
  /** Absolute. */
  readonly root: string
  /** Makes the folder where it is missing, and clears uploads that were cut off. */
  open(): Promise<void>
  /** In byte order of their names; only what can be served. */
  list(): Promise<readonly ImageRow[]>
  /** The next list is made anew: something was put there. */
  forget(): void
}

const KEPT_MS = 1000

export function createImageShelf(given: string, now: () => Date): ImageShelf {
  const root = resolve(given)
  let last: { readonly at: number; readonly rows: Promise<readonly ImageRow[]> } | null = null
  return {
    root,
    async open() {
      await makeFolder(root)
      await clearUploads(root)
    },
    list() {
      const at = now().getTime()
      if (last === null || Math.abs(at - last.at) >= KEPT_MS) {
        last = { at, rows: listServed(root) }
        // What could not be listed is not kept.
        last.rows.catch(() => {
          last = null
        })
      }
      return last.rows
    },
    forget() {
      last = null
    },
  }
}

async function listServed(root: string): Promise<readonly ImageRow[]> {
  const rows = await listImages(root)
  const inside = await Promise.all(rows.map(({ name, path }) => isServed(root, name, path)))
  return rows.filter((_, at) => inside[at])
}

/** Not what a link leads out of the folder to. */
async function isServed(root: string, name: string, path: string): Promise<boolean> {
  if (!isBareFileName(name)) return false
  const [folder, file] = await Promise.all([realpath(root), realpath(path)]).catch(() => ['', ''])
  return file !== '' && file.startsWith(`${folder}${sep}`)
}
