/** Finds, reads and writes files inside a foreign tree without ever leaving it. */
import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { constants, type FileHandle, lstat, mkdir, open, readdir, readlink } from 'node:fs/promises'
import { Fault, ifMissing } from '#kit/foundation/fault.ts'
import { moveName, removeName } from '#kit/host/folders.ts'

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants

export async function isFolderInside(root: string, path: string): Promise<boolean> {
  await using walk = await walkTo(root, path, 'stop')
  return walk.folder !== null
}

export async function existsInside(root: string, path: string): Promise<boolean> {
  const [parent, name] = splitLast(path)
  await using walk = await walkTo(root, parent, 'stop')
  return walk.folder !== null && (await findEntry(walk.folder, name)) !== null
}

export async function listInside(root: string, path: string): Promise<readonly string[]> {
  await using walk = await walkTo(root, path, 'stop')
  return walk.folder === null ? [] : (await readdir(entryOf(walk.folder, '.'))).toSorted()
}

/** Follows links inside the tree. Null: no regular file of at most `maxBytes`. */
export async function readInside(
  root: string,
  path: string,
  maxBytes: number,
): Promise<string | null> {
  let next: string | null = path
  for (let links = 0; next !== null && links <= MAX_LINKS; links += 1) {
    const [parent, name] = splitLast(next)
    await using walk = await walkTo(root, parent, 'stop')
    const stats = walk.folder === null ? null : await findEntry(walk.folder, name)
    if (walk.folder === null || stats === null) return null
    if (stats.isFile()) return await readFile(walk.folder, name, maxBytes)
    if (!stats.isSymbolicLink()) return null
    const target = await readLink(walk.folder, name)
    next = target === null || target.startsWith('/') ? target : `${parent}${target}`
  }
  return null
}

interface WriteInside {
  readonly folder: string
  readonly name: string
  readonly content: Buffer
  /** Permission bits, whatever the umask. */
  readonly mode: number
}

/**
 * Makes missing folders; replaces a file or a link in one step, durably. Rejects with a Fault
 * `input-invalid` where a folder or a special file has the name.
 */
export async function writeInside(root: string, request: WriteInside): Promise<void> {
  const { folder: path, name, content, mode } = request
  await using walk = await walkTo(root, path, 'make')
  const { folder } = walk
  if (folder === null) throw new Fault('input-invalid', `/${path} is no folder in the image`)
  const there = await findEntry(folder, name)
  if (there !== null && !there.isFile() && !there.isSymbolicLink()) {
    throw new Fault('input-invalid', `/${path}/${name} is ${kindOf(there)} in the image`)
  }
  const temporary = entryOf(folder, `.${name}.${randomBytes(6).toString('hex')}`)
  try {
    await using file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    await file.writeFile(content)
    await file.chmod(mode)
    await file.sync()
    await moveName(temporary, entryOf(folder, name))
  } catch (error) {
    // Best effort: the first failure is the one to report.
    await removeName(temporary).catch(() => undefined)
    throw error
  }
  await folder.sync()
}

async function readFile(
  folder: FileHandle,
  name: string,
  maxBytes: number,
): Promise<string | null> {
  await using file = await open(entryOf(folder, name), O_RDONLY | O_NOFOLLOW)
  const { size } = await file.stat()
  return size > maxBytes ? null : await file.readFile('utf8')
}

function splitLast(path: string): readonly [string, string] {
  const at = path.lastIndexOf('/')
  return [path.slice(0, at + 1), path.slice(at + 1)]
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a folder'
  if (stats.isFIFO()) return 'a FIFO'
  return stats.isSocket() ? 'a socket' : 'a device node'
}

/**
 * A name in an open folder, in place of openat(2): through /proc no name is looked up twice, and
 * the kernel follows no link of the tree.
 */
const entryOf = (folder: FileHandle, name: string): string => `/proc/self/fd/${folder.fd}/${name}`

const openFolder = (path: string) =>
  open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)

/** The kernel's own limit. */
const MAX_LINKS = 40
/** Bounds the open folders, too. */
const MAX_STEPS = 256

/**
 * `..` and absolute links stay below `root`. `make`: creates missing folders with mode 0755. Too
 * many links are a Fault `input-invalid`.
 */
async function walkTo(root: string, path: string, missing: 'stop' | 'make') {
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
const findEntry = (folder: FileHandle, name: string): Promise<Stats | null> =>
  lstat(entryOf(folder, name)).catch(ifMissing(null))

/** Null: no text. Node would look up another name than the one in the link. */
async function readLink(folder: FileHandle, name: string): Promise<string | null> {
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
