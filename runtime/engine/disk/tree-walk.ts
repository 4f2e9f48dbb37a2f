/** Resolves paths in a foreign tree as its own system would: follows links, but never out of the tree. */
import { isUtf8 } from 'node:buffer'
import type { Stats } from 'node:fs'
import { constants, lstat, mkdir, open, readlink, type FileHandle } from 'node:fs/promises'
import { Fault } from '#kit/foundation/fault.ts'
import { ifMissing } from '#kit/foundation/system-error.ts'

/**
 * A name in an open folder, in place of openat(2): through /proc no name is looked up twice, and
 * the kernel follows no link of the tree.
 */
export const entryOf = (folder: FileHandle, name: string): string =>
  `/proc/self/fd/${folder.fd}/${name}`

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
const openFolder = (path: string) => open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

/** The kernel's own limit. */
export const MAX_LINKS = 40
/** Bounds the open folders, too. */
const MAX_STEPS = 256

/**
 * `..` and absolute links stay below `root`. `make`: creates missing folders with mode 0755. Too
 * many links are a Fault `input-invalid`.
 */
export async function walkTo(root: string, path: string, missing: 'stop' | 'make') {
  await using opened = new AsyncDisposableStack()
  const top = opened.use(await openFolder(root))
  /** From the root to here; null: the path leads to no folder. */
  let folders: readonly FileHandle[] | null = [top]
  const todo = namesOf(path)
  let links = 0
  async function step(here: FileHandle, name: string, way: readonly FileHandle[]) {
    if (name === '..') return way.slice(0, Math.max(1, way.length - 1))
    const stats =
      (await findEntry(here, name)) ?? (missing === 'make' ? await make(here, name) : null)
    if (stats?.isSymbolicLink() === true) {
      const target = await readLink(here, name)
      if (target === null) return null
      todo.unshift(...namesOf(target))
      links += 1
      return target.startsWith('/') ? [top] : way
    }
    if (stats?.isDirectory() !== true) return null
    return [...way, opened.use(await openFolder(entryOf(here, name)))]
  }
  for (let steps = 0; folders !== null && todo.length > 0; steps += 1) {
    if (steps === MAX_STEPS || links > MAX_LINKS) {
      throw new Fault('input-invalid', `/${path} leads through too many links in the image`)
    }
    folders = await step(folders.at(-1) ?? top, todo.shift() ?? '', folders)
  }
  const held = opened.move()
  return {
    /** Held open; null: there is none. */
    folder: folders?.at(-1) ?? null,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** Does not follow links; null: nothing. */
export const findEntry = (folder: FileHandle, name: string): Promise<Stats | null> =>
  lstat(entryOf(folder, name)).catch(ifMissing(null))

/** Null: no text. Node would look up another name than the one in the link. */
export async function readLink(folder: FileHandle, name: string): Promise<string | null> {
  const target = await readlink(entryOf(folder, name), { encoding: 'buffer' })
  return isUtf8(target) ? target.toString() : null
}

const namesOf = (path: string) => path.split('/').filter((name) => name !== '' && name !== '.')

async function make(folder: FileHandle, name: string): Promise<Stats> {
  const path = entryOf(folder, name)
  await mkdir(path)
  await using made = await openFolder(path)
  // Whatever the umask, and without the set-group-id bit of the folder around it.
  await made.chmod(0o755)
  await folder.sync()
  return made.stat()
}
