/** Finds, reads and writes files inside a foreign tree without ever leaving it. */
import { randomBytes } from 'node:crypto'
import { constants, open, readdir, type FileHandle } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { Fault } from '#kit/foundation/fault.ts'
import { entryOf, findEntry, MAX_LINKS, readLink, walkTo } from './tree-walk.ts'
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
