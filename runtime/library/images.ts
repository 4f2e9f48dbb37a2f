/** Library entry points of the images module: what images a folder holds, and what one is. */
import { defaultImageRoot as resolveRoot, type ImageInfo, type ImageRow } from '../core/image.ts'
import { createImages } from '../services/images.ts'
import { createShell } from '../services/shell.ts'

export { detectFormat } from '../core/image.ts'
export type { ImageFormat, ImageInfo } from '../core/image.ts'

/** One image file: `name`, `path`, `format` and `size_bytes` (as stored). */
export type Image = ImageRow

const images = () => createImages({ shell: createShell({ env: process.env }) })

/** The folder that is looked in: FLASHER_IMAGE_ROOT, else /var/lib/flasher/images. */
export const defaultImageRoot = (): string => resolveRoot(process.env)

/** The images directly in a folder, in byte order of their paths; none where no folder is. */
export const listImages = (root: string = defaultImageRoot()): Promise<readonly Image[]> =>
  images().list(root)

/**
 * What one file is ("Image info"); its content is looked at. Rejects with an Error whose `code` is
 * `input-missing` where nothing is at that path.
 */
export const inspectImage = (path: string): Promise<ImageInfo> => images().inspect(path)
