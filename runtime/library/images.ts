/** Library entry points of the images module: what images a folder holds, and what one is. */
import { resolveImageRoot, type ImageInfo, type ImageRow } from '../engine/image/rules/image.ts'
import { createImages } from '../engine/image/images.ts'
import { createShell } from '../kit/host/shell.ts'
import { LibraryError, rethrowAs } from './library-error.ts'

export { detectFormat } from '../engine/image/rules/image.ts'
export type { ImageFormat, ImageInfo } from '../engine/image/rules/image.ts'

/** One image file: `name`, `path`, `format` and `size_bytes` (as stored). */
export type Image = ImageRow

/** What cannot be looked at: not there or not readable (`input-missing`), a tool that is not installed… */
export class ImageError extends LibraryError {
  override readonly name = 'ImageError'
}

const rethrow = rethrowAs(ImageError)
const images = () => createImages({ shell: createShell({ env: process.env }) })

/** The folder that is looked in: FLASHER_IMAGE_ROOT, else /var/lib/flasher/images. */
export const defaultImageRoot = (): string => resolveImageRoot(null, process.env)

/**
 * The images directly in a folder, in byte order of their paths; none where no folder is. Rejects
 * with an ImageError where it cannot be read.
 */
export const listImages = (root: string = defaultImageRoot()): Promise<readonly Image[]> =>
  images().list(root).catch(rethrow)

/**
 * What one file is ("Image info"); its content is looked at. Rejects with an ImageError where
 * it cannot be read: with `code` `input-missing` where nothing is at that path.
 */
export const inspectImage = (path: string): Promise<ImageInfo> =>
  images().inspect(path).catch(rethrow)
