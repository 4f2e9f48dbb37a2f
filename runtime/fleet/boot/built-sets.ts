/** Copies live systems that were built in a checkout into the boot directory. */
import { constants, copyFile, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { GRUB_FILES, SHIM_FILES } from '../../../appliance/assets.ts'
import {
  BOOT_ARCHS,
  decideAlias,
  listComplete,
  listSetFiles,
  type CompleteSet,
} from './rules/boot-set.ts'
import { listFolder, type FolderFile } from './boot-folder.ts'
import { UPLOAD } from '../../kit/host/temporary-uploads.ts'
import { makeFolder, moveName, removeName } from '../../kit/host/folders.ts'

interface BuiltFolders {
  /** Where `pnpm build:images` leaves its files; it need not exist. */
  readonly from: string
  readonly to: string
}

/** Firmware and shim ask for boot loaders by these names. */
const LOADERS = [
  'ipxe-x86_64.efi',
  'ipxe-arm64.efi',
  ...Object.values(SHIM_FILES),
  ...Object.values(GRUB_FILES),
]

/**
 * Copies the newest complete set of each architecture, and the newest boot loaders, and returns the
 * sets; files that are there already, as they were built, are left alone. It is called before the
 * boot directory is opened.
 */
export async function copyBuiltSets({ from, to }: BuiltFolders): Promise<readonly CompleteSet[]> {
  const files = await listFolder(from).catch(() => [])
  const names = files.map(({ name }) => name)
  const complete = listComplete(names)
  const sets = BOOT_ARCHS.flatMap((arch) => complete.find((set) => set.arch === arch) ?? [])
  if (sets.length === 0) return []
  await makeFolder(to)
  const wanted = new Set([
    ...sets.flatMap(listSetFiles),
    ...LOADERS.flatMap((alias) => decideAlias(alias, names) ?? []),
  ])
  for (const file of files.filter(({ name }) => wanted.has(name))) await copy(file, { from, to })
  return sets
}

/** Under its name only once it is whole; with its time, by which a later start knows it again. */
async function copy(file: FolderFile, { from, to }: BuiltFolders): Promise<void> {
  const { name, sizeBytes, changedMs } = file
  const path = join(to, name)
  const there = await stat(path).catch(() => null)
  const isSame =
    there?.size === sizeBytes && Math.trunc(there.mtimeMs / 1000) === Math.trunc(changedMs / 1000)
  if (isSame) return
  const temporary = join(to, `${UPLOAD}${name}`)
  try {
    // Shares the blocks where the file system can.
    await copyFile(join(from, name), temporary, constants.COPYFILE_FICLONE)
    await utimes(temporary, changedMs / 1000, changedMs / 1000)
    await moveName(temporary, path)
  } catch (thrown) {
    await removeName(temporary)
    throw thrown
  }
}
