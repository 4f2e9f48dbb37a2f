/** Copies live systems that were built in a checkout into the boot directory. */
import { constants, copyFile, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import {
  BOOT_ARCHS,
  decideAlias,
  listComplete,
  listSetFiles,
  type CompleteSet,
} from './rules/boot-set.ts'
import { listFolder, type FolderFile } from './boot-folder.ts'
import { UPLOAD } from '#kit/host/temporary-uploads.ts'
import { makeFolder, moveName, removeName } from '#kit/host/folders.ts'

interface BuiltFolders {
  /** Where `pnpm build:images` leaves its files; may be missing. */
  readonly from: string
  readonly to: string
}

const LOADERS = [
  'ipxe-x86_64.efi',
  'ipxe-arm64.efi',
  ...Object.values(SHIM_FILES),
  ...Object.values(GRUB_FILES),
]

/** Copies the newest sets and boot loaders that are missing, before the directory is opened. */
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

/** Renamed when whole. The copied time tells a later start that it is the same file. */
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
