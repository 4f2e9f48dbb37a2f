/** Keeps backups in a folder of this host: private files, on disk before they count, and nothing but files. */
import { readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Driver } from 'unstorage'
import { Fault, ifMissing, systemCodeOf } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { makeFolder, removeFolder, removeName, replaceFile } from '#kit/host/folders.ts'

/** Private, as the database: it holds passwords of templates. */
const PRIVATE_FOLDER = 0o700
const PRIVATE_FILE = 0o600
/** Larger than any value of ours, and than an inventory that can be imported. */
const MAX_VALUE_BYTES = 384 * 2 ** 20

/** Makes the folder. `driver`, unstorage's for it, only lists; the rest is done here. */
export async function openBackupFolder(driver: Driver, base: string): Promise<Driver> {
  await makeFolder(base, PRIVATE_FOLDER).catch(refuseFile(base))
  const pathOf = (key: string) => join(base, ...key.split(':'))
  async function check() {
    if (await isFile(base)) throw notAFolder('the backup folder is a file')
  }
  return {
    ...driver,
    async getItemRaw(key: string) {
      await check()
      return readPlainFile(pathOf(key))
    },
    async setItemRaw(key: string, value: Uint8Array) {
      await check()
      const path = pathOf(key)
      await makeFolder(dirname(path), PRIVATE_FOLDER)
      await replaceFile(path, value, PRIVATE_FILE)
    },
    async removeItem(key: string) {
      await check()
      await removeName(pathOf(key))
      // Best effort: an empty folder is no backup.
      await removeFolder(dirname(pathOf(key))).catch(() => undefined)
    },
    async getKeys(...given) {
      await check()
      return driver.getKeys(...given)
    },
  }
}

/** Null: no such file, or not a regular one. Reading a pipe or a device might never end. */
async function readPlainFile(path: string): Promise<Buffer | null> {
  const found = await stat(path).catch(ifMissing(null))
  if (found?.isFile() !== true) return null
  if (found.size > MAX_VALUE_BYTES) {
    throw new Fault('input-invalid', `${path} is too large to be a file of a backup`, {
      hint: `At most ${renderSize(MAX_VALUE_BYTES)} are read.`,
    })
  }
  return readFile(path).catch(ifMissing(null))
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => !found.isDirectory(),
    () => false,
  )

const refuseFile = (base: string) => (thrown: unknown) => {
  const isInTheWay = ['EEXIST', 'ENOTDIR'].includes(systemCodeOf(thrown) ?? '')
  throw isInTheWay
    ? notAFolder(`backups cannot be kept in ${base}: it is not a folder`, thrown)
    : thrown
}

const notAFolder = (words: string, cause?: unknown) =>
  new Fault('conflict', words, {
    hint: 'Move the file, or choose another folder (paths.backup_dir).',
    cause,
  })
