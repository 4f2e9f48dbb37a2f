/** Lists the images directly in a folder by name and size, without opening them. */
import { readdir, stat } from 'node:fs/promises'
import { Fault, isMissing, renderError } from '#kit/foundation/fault.ts'
import { detectFormat } from './rules/format.ts'
import type { ImageRow } from './rules/image.ts'
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'

/** The flag, `FLASHER_IMAGE_ROOT`, then the default. */
export const resolveImageRoot = (
  flag: string | null | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string => flag || env['FLASHER_IMAGE_ROOT'] || DEFAULT_IMAGE_ROOT

/** Relative where the root is. Removes only `.` and doubled `/`. */
export function joinImagePath(root: string, name: string): string {
  const folders = root.split('/').filter((folder) => folder !== '' && folder !== '.')
  return (root.startsWith('/') ? '/' : '') + [...folders, name].join('/')
}

/** In natural order (2.4.2 before 2.4.10); empty without the folder. */
export async function listImages(root: string): Promise<readonly ImageRow[]> {
  const rows = await Promise.all((await readNames(root)).map((name) => readRow(root, name)))
  return rows.filter((row) => row !== null).toSorted((a, b) => compare(a.name, b.name))
}

const compare = (one: string, other: string) =>
  one.localeCompare(other, 'en', { numeric: true }) || (one < other ? -1 : Number(one > other))

const readNames = (root: string): Promise<readonly string[]> =>
  readdir(root).catch((cause: unknown) => {
    if (isMissing(cause)) return []
    const words = `cannot list the images in ${root}: ${renderError(cause)}`
    throw new Fault('source-broken', words, { cause })
  })

/** Null: no image by its name, no file, or gone. */
async function readRow(root: string, name: string): Promise<ImageRow | null> {
  const path = joinImagePath(root, name)
  const format = detectFormat(name)
  // Best effort: one dangling link must not hide the other images.
  const file = format && (await stat(path).catch(() => null))
  if (format === null || file?.isFile() !== true) return null
  return { name, path, format, size_bytes: file.size }
}
