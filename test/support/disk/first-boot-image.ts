/** Small images with a root file system that cloud-init or Ignition would look into, and what a flash put there. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { createFlashedDisk, makeFolders, type Part } from './flashed-disk.ts'

export const SEED: FirstBoot = {
  cloudInit: {
    'user-data': '#cloud-config\n{"hostname":"web-1"}\n',
    'meta-data': 'instance-id: "flasher-1"\n',
    'network-config': 'version: 2\n',
  },
  ignition: '{"ignition":{"version":"3.3.0"}}\n',
  reason: null,
}

export const SEED_FOLDER = 'var/lib/cloud/seed/nocloud'

/** Where the second partition begins: behind a gap of 1 MiB and a first one of 4 MiB. */
export const ROOT_OFFSET: number = 5 * 2 ** 20

/** A partition of no use, then the root. */
export const CLOUD_PARTS: readonly Part[] = [
  { megabytes: 4 },
  { megabytes: 16, mkfs: ['mkfs.ext4', '-q'], fill: makeFolders('etc/cloud') },
]

export interface ImageFile extends AsyncDisposable {
  readonly path: string
}

/** Needs root. `names`: of the partitions, in their order. */
export async function createImageFile(
  parts: readonly Part[],
  names: readonly string[] = [],
): Promise<ImageFile> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-first-boot-'))
  const path = join(folder, 'disk.img')
  {
    await using disk = await createFlashedDisk(parts)
    for (const [at, name] of names.entries()) {
      await $({ quiet: true })`sfdisk --quiet --part-label ${disk.device} ${at + 1} ${name}`
    }
    await copyFile(disk.backing, path)
  }
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

/**
 * A file of an ext4 partition of a disk, whatever its table says; null: it is not there. Without a loop
 * device or a mount, which another program's mount namespace could keep; a journal that was cut off is
 * not replayed: what it holds does not count as written.
 */
export async function readPartFile(
  device: string,
  offset: number,
  path: string,
): Promise<string | null> {
  const run = $({ quiet: true })
  const { stdout, stderr } = await run`debugfs -R ${`cat /${path}`} ${device}?offset=${offset}`
  return /File not found|not a regular|Bad magic/.test(stderr) ? null : stdout
}
