/** Creates a folder with its parents, failing where it could hang, and says what lies below a folder. */
import { mkdir, realpath, stat } from 'node:fs/promises'
import { dirname, sep } from 'node:path'

/**
 * With the folders above it, one level at a time: Node's own way never ends where a file system says
 * that the folder above a new one is missing though it is there, as those of the kernel do (`/proc`).
 * What fails is Node's error, with the path of the level that could not be made.
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
}

/** Whether a file that exists lies below one of the folders, whatever links lead there. */
export async function isBelow(path: string, folders: readonly string[]): Promise<boolean> {
  const real = await realpath(path)
  // A folder that does not exist holds nothing.
  const roots = await Promise.all(folders.map((folder) => realpath(folder).catch(() => null)))
  return roots.some((root) => root !== null && real.startsWith(root === sep ? root : root + sep))
}

/** False for what is missing or cannot be looked at, too. */
export const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() === true
