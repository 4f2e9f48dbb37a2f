/** Reads the names that udev gives to disks: by physical slot, by label. */
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { chooseNames } from './rules/inventory-disk.ts'

export async function listLinks(folder: string) {
  const names = await readdir(folder).catch(() => [])
  const links = await Promise.all(
    names.map(async (name) => ({ name, node: await realpath(join(folder, name)).catch(() => '') })),
  )
  return links.filter(({ node }) => node !== '')
}

export const readPathNames = async (
  folder = '/dev/disk/by-path',
): Promise<ReadonlyMap<string, string>> => chooseNames(await listLinks(folder))
