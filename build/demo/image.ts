/** Lays the files of the demo: an image in the cache's folder, the machine's disk, boot sectors. */
import { createCipheriv } from 'node:crypto'
import { constants, copyFile, mkdir, open, rename, rm, stat, truncate } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { renderGreeter, SECTOR } from './boot-sector.ts'

/** The cache and the pages call the image by this name. */
export const OWN_IMAGE = 'hello-flasher.img'
/** Some seconds of writing on an emulated core. */
const IMAGE_BYTES = 64 * 2 ** 20

/** Makes the demo's own image where it is missing. Returns its name. */
export async function layOwnImage(folder: string): Promise<string> {
  const path = join(folder, OWN_IMAGE)
  if ((await stat(path).catch(() => null))?.size === IMAGE_BYTES) return OWN_IMAGE
  await lay(path, async (temporary) => {
    await using file = await open(temporary, 'w')
    await file.write(renderGreeter(IMAGE_BYTES))
    await file.write(renderData(IMAGE_BYTES - SECTOR))
  })
  return OWN_IMAGE
}

/** Puts a copy of an image of the person's own into the cache's folder. Returns its name. */
export async function layGivenImage(given: string, folder: string): Promise<string> {
  const name = basename(given)
  const path = join(folder, name)
  const [source, copy] = [await stat(given), await stat(path).catch(() => null)]
  if (copy?.size === source.size && copy.mtimeMs >= source.mtimeMs) return name
  // Shares the blocks where the file system can.
  await lay(path, (temporary) => copyFile(given, temporary, constants.COPYFILE_FICLONE))
  return name
}

/** The machine's disk: empty, and as large as it is only in name. Kept where it is there already. */
export async function layDisk(path: string, bytes: number): Promise<void> {
  await using file = await open(path, 'a')
  if ((await file.stat()).size !== bytes) await truncate(path, bytes)
}

/** Under its name only once it is whole: what begins with a dot is no image for the cache. */
async function lay(path: string, write: (temporary: string) => Promise<unknown>): Promise<void> {
  const folder = join(path, '..')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const temporary = join(folder, `.demo-${process.pid}`)
  try {
    await write(temporary)
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
}

/** The same bytes each time, none of which is a run of zeros. */
const renderData = (bytes: number): Buffer =>
  createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update(Buffer.alloc(bytes))
