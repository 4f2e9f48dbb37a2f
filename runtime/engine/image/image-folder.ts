/** Lists the images directly in a folder by name and size, without opening them. */
import { readdir, stat } from 'node:fs/promises'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { detectFormat } from './rules/format.ts'
import type { ImageRow } from './rules/image.ts'
import { DEFAULT_IMAGE_ROOT } from '../../../appliance/disk-images.ts'
import { isMissing } from '../../kit/foundation/system-error.ts'

/** The first of the flag, `FLASHER_IMAGE_ROOT` and the default that is not empty. */
export const resolveImageRoot = (
  flag: string | null | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string => flag || env['FLASHER_IMAGE_ROOT'] || DEFAULT_IMAGE_ROOT

/** Relative where the root is. Nothing but `.` and doubled `/` is left out. */
export function joinImagePath(root: string, name: string): string {
  const folders = root.split('/').filter((folder) => folder !== '' && folder !== '.')
  return (root.startsWith('/') ? '/' : '') + [...folders, name].join('/')
}

/** In the natural order of their names (2.4.2 before 2.4.10); empty where there is no folder. */
export async function listImages(root: string): Promise<readonly ImageRow[]> {
  const rows = await Promise.all((await readNames(root)).map((name) => readRow(root, name)))
  return rows.filter((row) => row !== null).toSorted((a, b) => compare(a.name, b.name))
}

/** Where the natural order sees no difference, the characters decide. */
const compare = (one: string, other: string) =>
  one.localeCompare(other, 'en', { numeric: true }) || (one < other ? -1 : Number(one > other))

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
