/** Lists the images directly in a folder by name and size, without opening them. */
import { readdir, stat } from 'node:fs/promises'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { detectFormat } from './rules/format.ts'
import { type ImageRow, joinImagePath } from './rules/image.ts'
import { isMissing } from '../../kit/foundation/system-error.ts'

/** In byte order of their paths; none where no folder is. */
export async function listImages(root: string): Promise<readonly ImageRow[]> {
  const rows = await Promise.all((await readNames(root)).map((name) => readRow(root, name)))
  return rows
    .filter((row) => row !== null)
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
}

const readNames = (root: string): Promise<readonly string[]> =>
  readdir(root).catch((cause: unknown) => {
    if (isMissing(cause)) return []
    const words = `cannot list the images in ${root}: ${renderError(cause)}`
    throw new Fault('source-broken', words, { cause })
  })

/** Null for what is no image by its name, no file, or no longer there. */
async function readRow(root: string, name: string): Promise<ImageRow | null> {
  const path = joinImagePath(root, name)
  const format = detectFormat(name)
  // Best effort: one dangling link must not hide the other images.
  const file = format && (await stat(path).catch(() => null))
  if (format === null || file?.isFile() !== true) return null
  return { name, path, format, size_bytes: file.size }
}
