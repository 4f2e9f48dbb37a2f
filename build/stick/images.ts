/** Puts disk images on the stick as files, by the rules of the page that fills one. */
import { copyFile, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { VENTOY_FOLDER } from '#appliance/contract.ts'
import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import { makePlace } from '#build/app/lay.ts'
import { digestFile } from '#build/cache/digest.ts'
import { refuseSize } from './files.ts'

/** What FAT32 takes in no name. */
const FORBIDDEN = /[\\/:*?"<>|]/

/**
 * Tells why an image cannot lie on the stick; null where it can.
 *
 * @param bytes is its size; null: it is no file.
 */
export function refuseImage(name: string, bytes: number | null): string | null {
  if (bytes === null) return `${name} is no file`
  const isImage = IMAGE_ENDINGS.some((ending) => name.toLowerCase().endsWith(ending))
  if (!isImage || name.startsWith('.')) {
    return `${name} is no disk image by its name. Images end in ${IMAGE_ENDINGS.join(', ')}`
  }
  if (FORBIDDEN.test(name)) return `${name} has a character that FAT32 takes in no name`
  const refusal = refuseSize(name, bytes)
  return refusal === null ? null : `${refusal}: compress it to .img.zst, or use a server`
}

/** The first reason why these files cannot lie on one stick; null where they can. Nothing is written. */
export async function findRefusal(paths: readonly string[]): Promise<string | null> {
  const names = new Set<string>()
  for (const path of paths) {
    const name = basename(path)
    // Names differ in more than their case.
    if (names.has(name.toLowerCase())) return `two images are named ${name}`
    names.add(name.toLowerCase())
    const entry = await stat(path).catch(() => null)
    const refusal = refuseImage(name, entry?.isFile() === true ? entry.size : null)
    if (refusal !== null) return refusal
  }
  return null
}

/**
 * Copies the images into the folder of the stick, one after the other, and reads each back.
 *
 * @param say gets a line for each.
 * @throws {Error} What was read back differs.
 */
export async function addImages(
  paths: readonly string[],
  stick: string,
  say: (line: string) => void,
): Promise<void> {
  for (const path of paths) {
    const place = await makePlace(stick, join(VENTOY_FOLDER, basename(path)))
    const part = `${place}.part`
    try {
      await copyFile(path, part)
      if ((await digestFile(path)) !== (await digestFile(part))) {
        throw new Error(`${basename(path)} was not read back as it was written`)
      }
      await rename(part, place)
    } finally {
      await rm(part, { force: true })
    }
    say(`${VENTOY_FOLDER}/${basename(path)}: copied and read back`)
  }
}
