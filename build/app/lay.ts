/** Copies files of the checkout as git tracks them: owners, dates and most mode bits differ between clones. */
import { chmod, copyFile, lstat, mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

interface LayOptions {
  /** This is called with paths below `from`; default: everything is copied. */
  readonly wants?: (path: string) => boolean
}

/** Copies the contents of the folder `from` into the folder `to`. */
export async function layFolder(
  from: string,
  to: string,
  { wants }: LayOptions = {},
): Promise<void> {
  await mkdir(to, { recursive: true })
  await chmod(to, 0o755)
  for (const name of await readdir(from)) {
    const [source, place] = [join(from, name), join(to, name)]
    if (wants?.(source) === false) continue
    const entry = await lstat(source)
    if (entry.isDirectory()) await layFolder(source, place, wants === undefined ? {} : { wants })
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), place)
    else await layFile(source, place, (entry.mode & 0o100) !== 0)
  }
}

/** Copies a file; a program gets mode 0755, anything else 0644. */
export async function layFile(from: string, to: string, isProgram = false): Promise<void> {
  await copyFile(from, to)
  await chmod(to, isProgram ? 0o755 : 0o644)
}

/** Returns the path of `path` below `root`, with the folder that it is in made. */
export async function makePlace(root: string, path: string): Promise<string> {
  const place = join(root, path)
  await mkdir(dirname(place), { recursive: true })
  return place
}
