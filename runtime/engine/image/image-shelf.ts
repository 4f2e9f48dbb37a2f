/** The images of a folder that a server offers: listed at most once a second, however many ask. */
import { join, resolve } from 'node:path'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import type { ImageRow } from './rules/image.ts'
import { isBelow, makeFolder, removeName } from '#kit/host/folders.ts'
import { clearUploads } from '#kit/host/partial-files.ts'
import { listImages } from './image-folder.ts'

export type ImageShelf = ReturnType<typeof createImageShelf>

const KEPT_MS = 1000

export function createImageShelf(given: string, now: () => Date) {
  const root = resolve(given)
  let last: { readonly at: number; readonly rows: Promise<readonly ImageRow[]> } | null = null
  return {
    /** Absolute. */
    root,
    /** Makes a missing folder, and clears uploads that were cut off. */
    async open() {
      await makeFolder(root)
      await clearUploads(root)
    },
    list(): Promise<readonly ImageRow[]> {
      const at = now().getTime()
      if (last === null || Math.abs(at - last.at) >= KEPT_MS) {
        last = { at, rows: listServed(root) }
        // A failed list is not kept.
        last.rows.catch(() => {
          last = null
        })
      }
      return last.rows
    },
    /** No error where nothing has this name. Rejects with Node's error. */
    async remove(name: string): Promise<void> {
      if (!isBareFileName(name)) return
      await removeName(join(root, name))
      last = null
    },
    forget() {
      last = null
    },
  }
}

async function listServed(root: string): Promise<readonly ImageRow[]> {
  const rows = await listImages(root)
  // No link leads out of the folder.
  const isServed = async ({ name, path }: ImageRow) =>
    isBareFileName(name) && (await isBelow(path, [root]).catch(() => false))
  const served = await Promise.all(rows.map(isServed))
  return rows.filter((_, at) => served[at])
}
