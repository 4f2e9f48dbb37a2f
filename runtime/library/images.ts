/** Library entry points of the images module: what images a folder holds, and what one is. */
import type { ImageFormat } from '#appliance/disk-images.ts'
import { detectFormat as detect } from '#engine/image/rules/format.ts'
import type { ImageInfo, ImageRow } from '#engine/image/rules/image.ts'
import { createImages } from '#engine/image/images.ts'
import { resolveImageRoot } from '#engine/image/image-folder.ts'
import { createShell } from '#kit/host/shell.ts'
import { LibraryError, rethrowAs } from './library-error.ts'

export type { ImageFormat } from '#appliance/disk-images.ts'
export type { ImageInfo } from '#engine/image/rules/image.ts'

/** One image file of a folder; `size_bytes` is its size as stored, in bytes. */
export type Image = ImageRow

/**
 * Why an image or a folder could not be read. `code` is `input-missing` (it does not exist or may not be
 * read), `tool-missing`…; `hint` says how to fix it, where that is known.
 *
 * @example
 * ```ts
 * import { ImageError, inspectImage } from 'flasher-lab/images'
 *
 * try {
 *   await inspectImage('missing.img')
 * } catch (error) {
 *   if (error instanceof ImageError) console.log(error.code) // input-missing
 * }
 * ```
 */
export class ImageError extends LibraryError {
  override readonly name = 'ImageError'
}

const rethrow = rethrowAs(ImageError)
const images = () => createImages({ shell: createShell({ env: process.env }) })

/**
 * Says which format a file name promises, in any case; opens no file.
 *
 * @param name - A file name, a path or a URL.
 * @returns The format, or null if it is none that can be flashed.
 *
 * @example
 * ```ts
 * import { detectFormat } from 'flasher-lab/images'
 *
 * console.log(detectFormat('Debian.IMG.ZST'), detectFormat('debian.iso')) // img.zst null
 * ```
 */
export const detectFormat = (name: string): ImageFormat | null => detect(name)

/**
 * Says where this machine keeps its images.
 *
 * @returns `FLASHER_IMAGE_ROOT` of the environment, else `/var/lib/flasher/images`.
 *
 * @example
 * ```ts
 * import { defaultImageRoot } from 'flasher-lab/images'
 *
 * console.log(defaultImageRoot()) // /var/lib/flasher/images
 * ```
 */
export const defaultImageRoot = (): string => resolveImageRoot(null, process.env)

/**
 * Lists the images that lie directly in a folder, in the natural order of their names (2.4.2 before
 * 2.4.10). Only their names decide; no file is opened.
 *
 * @param root - The folder (default: `defaultImageRoot()`).
 * @returns The images; none if there is no such folder. `size_bytes` is the size as stored.
 * @throws {ImageError} The folder cannot be read.
 *
 * @example
 * ```ts
 * import { listImages } from 'flasher-lab/images'
 *
 * for (const { name, format } of await listImages('.')) console.log(name, format) // debian.img.zst img.zst
 * ```
 */
export const listImages = (root: string = defaultImageRoot()): Promise<readonly Image[]> =>
  images().list(root).catch(rethrow)

/**
 * Reads what a file says of itself: its format, its size as stored, and its size on a disk.
 *
 * @param path - The file.
 * @returns Sizes in bytes. `virtual_size_bytes` is null unless the file says exactly how much it needs on
 *   a disk; `format` is null if it cannot be flashed, and then `detail_error` says why.
 * @throws {ImageError} The file does not exist or may not be read (`input-missing`).
 *
 * @example
 * ```ts
 * import { inspectImage } from 'flasher-lab/images'
 *
 * const { format, virtual_size_bytes } = await inspectImage('debian.img.zst')
 * console.log(format, virtual_size_bytes) // img.zst 3145728
 * ```
 */
export const inspectImage = (path: string): Promise<ImageInfo> =>
  images().inspect(path).catch(rethrow)
