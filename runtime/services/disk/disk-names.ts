/** The names under which udev lists disks by the place where they are plugged in. */
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { chooseNames } from '../../core/disk/inventory-disk.ts'

/** By device node; empty where there is no udev. */
export async function readPlaceNames(
  folder = '/dev/disk/by-path',
): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(folder).catch(() => [])
  const links = await Promise.all(
    names.map(async (name) => ({ name, node: await realpath(join(folder, name)).catch(() => '') })),
  )
  return chooseNames(links.filter(({ node }) => node !== ''))
}
