/** Small images for stories: flashed within seconds, and known again by every byte. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fromFile, unsized } from '#test/support/disk/compressed.ts'
import { CLOUD_PARTS, createImageFile } from '#test/support/disk/first-boot-image.ts'
import { makeGrowingImage } from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { makeTalkingDisk } from '../ipxe.ts'
import { USED } from './story.ts'

export interface StoryImage {
  /** The file that the cache offers. */
  readonly packed: string
  /** What a disk holds at its beginning once it is flashed. */
  readonly bytes: Buffer
}

export type StoryImages = Awaited<ReturnType<typeof makeStoryImages>>
export type ImageName = keyof StoryImages

const MEGABYTES = 24

/** Makes all of them into a folder, within a second or two. */
export async function makeStoryImages(folder: string) {
  const talking = await readFile(await makeTalkingDisk(folder))
  const bytes = Buffer.concat([talking, randomBytes(MEGABYTES * 2 ** 20 - talking.length)])
  const repetitive = Buffer.concat([talking, Buffer.alloc(bytes.length - talking.length, 'again ')])
  const packed = fromFile(['zstd', '-q', '-1', '-c', '{}'], bytes)
  const keep = async (name: string, content: Buffer, of: Buffer = bytes): Promise<StoryImage> => {
    const path = join(folder, name)
    await writeFile(path, content)
    return { packed: path, bytes: of }
  }
  const keepRaw = (name: string, content: Buffer) => keep(name, content, content)
  return {
    /** A BIOS starts it, and it says so (`DISK_SAYS`). */
    small: await keep('small.img.zst', packed),
    raw: await keep('raw.img', bytes),
    /** It does not say how large it is, and its file is small. */
    unsized: await keep('unsized.img.zst', unsized(repetitive), repetitive),
    /** As a disk leaves it that rots: it cannot be unpacked to its end. */
    damaged: await keep('damaged.img.zst', changeMiddle(packed)),
    /** It has an index of its frames. */
    framed: await keep('framed.img.zst', (await packBuffer(bytes)).file),
    /** It is made for sectors of 4096 bytes. */
    native: await keepRaw('native.img', await makeNativeDisk(join(folder, 'native'))),
    /** Its file system can grow. */
    growing: await keepRaw('growing.img', await readGrowing()),
    /** Cloud-init looks into its root. */
    cloud: await keepRaw('cloud.img', await readCloud()),
  }
}

/** One byte in the middle is another. */
export function changeMiddle(content: Buffer): Buffer {
  const changed = Buffer.from(content)
  const at = Math.floor(content.length / 2)
  changed.writeUInt8(content.readUInt8(at) ^ 0xff, at)
  return changed
}

async function makeNativeDisk(path: string): Promise<Buffer> {
  const content = [Buffer.alloc(2 ** 20), randomBytes((MEGABYTES - 1) * 2 ** 20)]
  await writeFile(path, Buffer.concat(content))
  {
    await using loop = await createLoop({ backing: path, sectorBytes: 4096 })
    execFileSync('sgdisk', ['--new=1:256:2048', loop.device], { stdio: 'ignore' })
  }
  return await readFile(path)
}

async function readGrowing(): Promise<Buffer> {
  await using image = await makeGrowingImage('ext4')
  return await readFile(image.path)
}

async function readCloud(): Promise<Buffer> {
  await using image = await createImageFile(CLOUD_PARTS)
  return await readFile(image.path)
}

/** `image`: all of its bytes; `blank`: nothing that a firmware would start; `used`: as it was before. */
export type DiskContent = 'image' | 'blank' | 'used' | 'other'

export async function readContent(path: string, { bytes }: StoryImage): Promise<DiskContent> {
  await using file = await open(path)
  const found = Buffer.alloc(bytes.length)
  await file.read(found, 0, found.length, 0)
  if (found.equals(bytes)) return 'image'
  if (found.subarray(0, 4096).every((byte) => byte === 0)) return 'blank'
  const isUsed = found.subarray(0, USED.length).equals(USED)
  return isUsed && found.subarray(USED.length).every((byte) => byte === 0) ? 'used' : 'other'
}
