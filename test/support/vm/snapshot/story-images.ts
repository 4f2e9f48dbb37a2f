/** Small images for stories: flashed within seconds, and known again by every byte. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { open, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createLoop } from '../../disk/loop.ts'
import { makeTalkingDisk } from '../ipxe.ts'
import { USED } from './story.ts'

export interface StoryImage {
  /** The file that the cache offers. */
  readonly packed: string
  /** What a disk holds at its beginning once it is flashed. */
  readonly bytes: Buffer
}

const pack = (raw: string) => {
  execFileSync('zstd', ['-q', '-1', '-f', raw])
  return `${raw}.zst`
}

/** A BIOS starts it, and it says so (`DISK_SAYS`). */
export async function makeStoryImage(
  folder: string,
  name: string,
  megabytes: number,
): Promise<StoryImage> {
  const talking = await readFile(await makeTalkingDisk(folder))
  const bytes = Buffer.concat([talking, randomBytes(megabytes * 2 ** 20 - talking.length)])
  const raw = join(folder, name)
  await writeFile(raw, bytes)
  return { packed: pack(raw), bytes }
}

/** Makes one with a partition table for sectors of 4096 bytes. */
export async function makeNativeImage(
  folder: string,
  name: string,
  megabytes: number,
): Promise<StoryImage> {
  const raw = join(folder, name)
  await writeFile(
    raw,
    Buffer.concat([Buffer.alloc(2 ** 20), randomBytes((megabytes - 1) * 2 ** 20)]),
  )
  {
    await using loop = await createLoop({ backing: raw, sectorBytes: 4096 })
    execFileSync('sgdisk', ['--new=1:256:2048', loop.device], { stdio: 'ignore' })
  }
  return { packed: pack(raw), bytes: await readFile(raw) }
}

/** Makes what a disk leaves that rots: one byte in the middle of what is packed is another. */
export async function makeDamagedImage(image: StoryImage, name: string): Promise<StoryImage> {
  const packed = await readFile(image.packed)
  const at = Math.floor(packed.length / 2)
  packed.writeUInt8(packed.readUInt8(at) ^ 0xff, at)
  const path = join(dirname(image.packed), name)
  await writeFile(path, packed)
  return { ...image, packed: path }
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
