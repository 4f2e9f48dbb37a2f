/** The real input of the tests: a bootable Debian disk image, in every format that we flash. */
import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx'
import { makeDebianDisk } from './debian-disk.ts'
import { findKernel, makeDebianTree, readCodename } from './debian-tree.ts'
import { openTestCache } from '../server/test-cache.ts'

const SIZE_BYTES = 640 * 2 ** 20

export const IMAGE_FORMATS = ['img', 'img.zst', 'img.xz', 'img.gz', 'img.bz2', 'qcow2'] as const
export type DebianFormat = (typeof IMAGE_FORMATS)[number]

export interface DebianImage {
  /** Size of the disk inside, whatever the format. */
  readonly virtualBytes: number
  /** Its kernel and initramfs, for a guest that is started without a boot loader. */
  readonly kernel: string
  readonly initrd: string
  /** The path of the image in this format, made at the first call. Never to be written to. */
  file(format: DebianFormat): Promise<string>
}

/** Why no image can be made here; null where it can. */
export function findImageObstacle(): string | null {
  if (process.arch !== 'x64') return 'the Debian image is for x86-64 only'
  return process.getuid?.() === 0 ? null : 'making the Debian image needs root'
}

/** One try for all tests of a run: what fails once fails again, after as long. */
let opened: Promise<DebianImage> | undefined

/** Some 50 seconds at the first call of a week, else at once. */
export const openDebianImage = (): Promise<DebianImage> => (opened ??= openImage())

async function openImage(): Promise<DebianImage> {
  const recipe = ['debian-image.ts', 'debian-disk.ts', 'debian-tree.ts']
  const cache = await openTestCache('debian', {
    recipe: recipe.map((name) => join(import.meta.dirname, name)),
    also: [await readCodename()],
  })
  const folder = await cache.keep(['debian.img', 'vmlinuz', 'initrd'], makeRaw)
  const raw = join(folder, 'debian.img')
  return {
    virtualBytes: SIZE_BYTES,
    kernel: join(folder, 'vmlinuz'),
    initrd: join(folder, 'initrd'),
    async file(format) {
      if (format === 'img') return raw
      const name = `debian.${format}`
      const pack = async (to: string) => {
        await PACK[format](raw, join(to, name))
      }
      return join(await cache.keep([name], pack), name)
    },
  }
}

const run = $({ quiet: true, verbose: false })

async function makeRaw(folder: string) {
  const tree = join(folder, 'tree')
  await makeDebianTree(tree)
  const workspace = join(folder, 'workspace')
  await makeDebianDisk(tree, join(folder, 'debian.img'), { sizeBytes: SIZE_BYTES, workspace })
  const { kernel, initrd } = await findKernel(tree)
  await copyFile(join(tree, 'boot', kernel), join(folder, 'vmlinuz'))
  await copyFile(join(tree, 'boot', initrd), join(folder, 'initrd'))
  await rm(tree, { recursive: true })
}

type Pack = (raw: string, to: string) => Promise<unknown>

/** Images of this kind are commonly packed so; xz and bz2 in blocks, which can be read in parallel. */
const PACK: Readonly<Record<Exclude<DebianFormat, 'img'>, Pack>> = {
  'img.zst': (raw, to) => run`zstd -q -3 -T0 ${raw} -o ${to}`,
  'img.xz': (raw, to) => run`xz -1 -T0 --block-size=16MiB -c ${raw} > ${to}`,
  'img.gz': (raw, to) => run`pigz -c ${raw} > ${to}`,
  'img.bz2': (raw, to) => run`lbzip2 -c ${raw} > ${to}`,
  qcow2: (raw, to) => run`qemu-img convert -O qcow2 ${raw} ${to}`,
}

if (import.meta.main) {
  const image = await openDebianImage()
  for (const format of IMAGE_FORMATS) console.log(await image.file(format))
}
