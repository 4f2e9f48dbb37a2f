/** A FAT volume with the files of a folder, made by mtools: no file system is mounted. */
import { open, readdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx/core'
import { SECTOR_BYTES } from '#build/gpt/table.ts'

interface FatOptions {
  /** The folder whose files go into it. */
  readonly root: string
  readonly image: string
  readonly sectors: number
  /** The label has at most 11 characters. */
  readonly label: string
  /** Fixed, so that builds are reproducible. */
  readonly serial: number
  /** Seconds since 1970: the time of all files. */
  readonly epoch: number
  /** Sectors in a cluster of FAT32; absent: what mtools chooses for the size. */
  readonly clusterSectors?: number
}

/**
 * Writes the volume into the file `image`; files in `root` get the time `epoch`. Rejects where
 * mtools fails.
 */
export async function writeFatVolume(options: FatOptions): Promise<void> {
  const { root, image, sectors, label, serial, epoch, clusterSectors } = options
  const env = { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8', MTOOLS_SKIP_CHECK: '1' }
  const run = $({ quiet: true, env: { ...env, SOURCE_DATE_EPOCH: String(epoch) } })
  // Sorted by name: what a folder lists first depends on the host's file system.
  const paths = (await readdir(root, { recursive: true })).toSorted()
  for (const path of paths) await utimes(join(root, path), epoch, epoch)
  await using file = await open(image, 'w')
  await file.truncate(sectors * SECTOR_BYTES)
  const kind = clusterSectors === undefined ? [] : ['-F', '-c', String(clusterSectors)]
  const size = ['-T', String(sectors), '-h', '64', '-s', '32']
  await run`mformat -i ${image} -v ${label} -N ${serial.toString(16)} ${kind} ${size} ::`
  for (const path of paths) {
    const from = join(root, path)
    if ((await stat(from)).isDirectory()) await run`mmd -i ${image} ${`::${path}`}`
    else await run`mcopy -Q -m -i ${image} ${from} ${`::${path}`}`
  }
}
