/** Lays the files of the demo: an image in the cache's folder, the machine's disk, boot sectors. */
import { createCipheriv } from 'node:crypto'
import {
  constants,
  copyFile,
  mkdir,
  mkdtempDisposable,
  open,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  type FileHandle,
} from 'node:fs/promises'
import { basename, join } from 'node:path'
import { writeExt4Volume } from '#build/volumes/ext4.ts'
import { renderGreeter, SECTOR, VOLUME } from './boot-sector.ts'

/** The cache and the pages call the image by this name. */
export const OWN_IMAGE = 'hello-flasher.img'
/** Some seconds of writing on an emulated core. */
const IMAGE_BYTES = 64 * 2 ** 20

/** The image that the demo flashes. */
interface LaidImage {
  readonly name: string
  /** It holds the configuration of a first boot, and calls the address in it once it has booted. */
  readonly calls: boolean
}

/** Makes the demo's own image where it is missing; without mke2fs it has no volume, and calls nobody. */
export async function layOwnImage(folder: string): Promise<LaidImage> {
  const path = join(folder, OWN_IMAGE)
  if (await holds(path, true)) return { name: OWN_IMAGE, calls: true }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await using work = await mkdtempDisposable(join(folder, '.demo-'))
  const volume = await makeVolume(work.path).catch(() => null)
  const calls = volume !== null
  if (!calls && (await holds(path, false))) return { name: OWN_IMAGE, calls }
  await lay(path, async (temporary) => {
    await using file = await open(temporary, 'w')
    const sector = renderGreeter(IMAGE_BYTES, calls)
    await file.write(sector)
    await file.write(renderData(IMAGE_BYTES - SECTOR))
    if (volume !== null) await layVolume(file, volume)
  })
  return { name: OWN_IMAGE, calls }
}

/** Whether it was made before, as it would be made now. */
async function holds(path: string, hasVolume: boolean): Promise<boolean> {
  if ((await stat(path).catch(() => null))?.size !== IMAGE_BYTES) return false
  await using file = await open(path)
  const { buffer } = await file.read(Buffer.alloc(SECTOR), 0, SECTOR, 0)
  return buffer.equals(renderGreeter(IMAGE_BYTES, hasVolume))
}

/** What flasher takes for a root file system with cloud-init. Rejects where there is no mke2fs. */
async function makeVolume(work: string): Promise<string> {
  const [root, image] = [join(work, 'root'), join(work, 'volume')]
  await mkdir(join(root, 'etc/cloud'), { recursive: true })
  const { sectors } = VOLUME
  await writeExt4Volume({ root, image, sectors, label: 'hello', id: OWN_IMAGE, epoch: 0 })
  return image
}

/** The volume whole, zeros as well: other data lies there. */
async function layVolume(file: FileHandle, volume: string): Promise<void> {
  const bytes = await readFile(volume)
  await file.write(bytes, 0, bytes.length, VOLUME.firstSector * SECTOR)
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
