/** Changes names and contents of files and folders so that a power cut leaves them as they were, or as they shall be. */
import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync } from 'node:fs'
import {
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
} from 'node:fs/promises'
import { basename, dirname, sep } from 'node:path'
import { Fault, ifMissing, isMissing, systemCodeOf } from '#kit/foundation/fault.ts'
import { randomBytes } from 'node:crypto'

/**
 * Makes a folder with those above it, one level at a time: Node's own way never ends where a file
 * system says that the folder above a new one is missing though it is there, as those of the kernel
 * do (`/proc`). What fails is Node's error, with the path of the level that could not be made.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  if (await isFolder(path)) return
  const above = dirname(path)
  if (above !== path) await makeFolder(above, mode)
  try {
    await mkdir(path, { mode })
  } catch (thrown) {
    // Another process may have been faster.
    if (!(await isFolder(path))) throw thrown
  }
  await syncFolder(above)
}

/** Whatever links lead there. Rejects with Node's error where the file does not exist. */
export async function isBelow(path: string, folders: readonly string[]): Promise<boolean> {
  const real = await realpath(path)
  // A folder that does not exist holds nothing.
  const roots = await Promise.all(folders.map((folder) => realpath(folder).catch(() => null)))
  return roots.some((root) => root !== null && real.startsWith(root === sep ? root : root + sep))
}

/** Tells whether a path is a folder; false for what is missing or cannot be looked at, too. */
export const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() === true

/** Replaces what has the name `to`; both are on the same file system. */
export async function moveName(from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncBoth(from, to)
}

/** Gives a file a second name. Rejects with Node's error where something has that name. */
export async function linkName(from: string, to: string): Promise<void> {
  await link(from, to)
  await syncFolder(dirname(to))
}

/** Nothing happens where nothing has this name. Rejects with Node's error for a folder. */
export async function removeName(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (thrown) {
    if (isMissing(thrown)) return
    throw thrown
  }
  await syncFolder(dirname(path))
}

export async function removeFolder(path: string): Promise<void> {
  await rmdir(path)
  await syncFolder(dirname(path))
}

/** Removes a file or a folder with everything below it, where it is there at all. */
export async function removeTree(path: string): Promise<void> {
  if ((await lstat(path).catch(ifMissing(null))) === null) return
  await rm(path, { recursive: true, force: true })
  await syncFolder(dirname(path))
}

/**
 * Makes durable what was made in a folder, moved into it or removed from it: it outlives a power
 * cut. File systems that cannot do that for a folder are excused.
 */
export async function syncFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, 'r')
    await handle.sync()
  } catch (thrown) {
    excuse(thrown)
  }
}

/** Does what `moveName` does, and blocks: nothing may happen meanwhile. */
export function moveNameNow(from: string, to: string): void {
  renameSync(from, to)
  syncNow(dirname(to))
  if (dirname(from) !== dirname(to)) syncNow(dirname(from))
}

export function linkNameNow(from: string, to: string): void {
  linkSync(from, to)
  syncNow(dirname(to))
}

export function removeNameNow(path: string): void {
  if (!existsSync(path)) return
  rmSync(path, { force: true })
  syncNow(dirname(path))
}

export function syncNow(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } catch (thrown) {
    excuse(thrown)
  } finally {
    closeSync(handle)
  }
}

async function syncBoth(from: string, to: string): Promise<void> {
  await syncFolder(dirname(to))
  if (dirname(from) !== dirname(to)) await syncFolder(dirname(from))
}

/**
 * File systems that cannot sync a folder (some of FUSE, network shares) say one of these, and a folder
 * that may be written but not read cannot be opened; `ENOENT`: the folder itself is gone since.
 */
const EXCUSED = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EACCES', 'ENOENT'])

function excuse(thrown: unknown): void {
  if (!EXCUSED.has(systemCodeOf(thrown) ?? '')) throw thrown
}

/**
 * Replaces a file: the content is written beside it, made durable, and put in its place; its folder
 * is made. Others may read it only where `mode` lets them: what we keep holds addresses with
 * passwords in them. What root writes belongs to whom the folder belongs. Rejects with Node's error
 * where it cannot be written; the file then stays as it was.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array | AsyncIterable<string>,
  mode: number = 0o600,
): Promise<void> {
  const folder = dirname(path)
  await makeFolder(folder)
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await using handle = await open(temporary, 'wx', mode)
    await adopt(handle, folder)
    await handle.writeFile(content)
    await handle.sync()
    await moveName(temporary, path)
  } catch (thrown) {
    // Best effort: what counts is why it could not be written.
    await removeName(temporary).catch(() => {})
    throw thrown
  }
}

/** A server that runs as another user must be able to read what a command of root's wrote. */
async function adopt(handle: FileHandle, folder: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await stat(folder)
  // Best effort: not every file system knows owners.
  if (uid !== 0) await handle.chown(uid, gid).catch(() => undefined)
}

/** Both paths are on one file system. A Fault `conflict` where something has that name. */
export async function moveNewFile(from: string, to: string): Promise<void> {
  try {
    await linkName(from, to)
    await removeName(from)
  } catch (thrown) {
    if (!LINKLESS.has(systemCodeOf(thrown) ?? '')) throw refusalOf(thrown, to)
    await claim(to)
    await moveName(from, to)
  }
}

/** File systems without hard links, such as exFAT, answer with one of these. */
const LINKLESS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

/** An empty file keeps the name until ours replaces it. */
async function claim(path: string): Promise<void> {
  const handle = await open(path, 'wx').catch((thrown: unknown) => {
    throw refusalOf(thrown, path)
  })
  await handle.close()
}

const refusalOf = (thrown: unknown, path: string): unknown =>
  systemCodeOf(thrown) === 'EEXIST'
    ? new Fault('conflict', `a file named ${basename(path)} is in the folder already`, {
        hint: 'Remove it first, or rename the new one.',
        cause: thrown,
      })
    : thrown
