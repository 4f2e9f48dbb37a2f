/** What files and folders are worth: by content for what depends on them, by listing to see that nobody touched them. */
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { collectImports } from './imports.ts'

/** SHA-256 in hexadecimal. */
export async function digestFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 2 ** 20 }), hash)
  return hash.digest('hex')
}

/** Of a file: of its content. Of a folder: of names, modes, owners, links and contents below it. */
export async function digestPath(path: string): Promise<string> {
  const entry = await lstat(path)
  return entry.isDirectory() ? await digestFolder(path, digestLine) : await digestFile(path)
}

/** Of a folder: of names, modes, owners, sizes and times. Of a file: of its content, which is quick. */
export async function digestListing(path: string): Promise<string> {
  const entry = await lstat(path)
  return entry.isDirectory() ? await digestFolder(path, listingLine) : await digestFile(path)
}

/**
 * Of a path below `checkout`, as `digestPath`; a TypeScript program stands for all that it imports. The
 * same in every checkout, whoever it belongs to.
 */
export async function digestSource(path: string, checkout: string): Promise<string> {
  const read = (file: string) => readFileSync(join(checkout, file), 'utf8')
  if (!path.endsWith('.ts')) return await digestTracked(join(checkout, path))
  const hash = createHash('sha256')
  for (const file of collectImports([path], read).files) hash.update(`${file}\0${read(file)}\0`)
  return hash.digest('hex')
}

async function digestTracked(path: string): Promise<string> {
  const entry = await lstat(path)
  return entry.isDirectory() ? await digestFolder(path, trackedLine) : await digestFile(path)
}

type Line = (path: string) => Promise<string>

async function digestFolder(root: string, line: Line): Promise<string> {
  const hash = createHash('sha256')
  // What a folder in the checkout is reached through makes no difference.
  const top = await realpath(root)
  for await (const name of walk(top, '')) hash.update(`${name}\0${await line(join(top, name))}\n`)
  return hash.digest('hex')
}

/** Paths below `top`, folders before what lies in them, in the order of their bytes. */
async function* walk(top: string, folder: string): AsyncGenerator<string> {
  const entries = await readdir(join(top, folder), { withFileTypes: true })
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    yield path
    if (entry.isDirectory()) yield* walk(top, path)
  }
}

async function digestLine(path: string): Promise<string> {
  const entry = await lstat(path)
  const head = `${entry.mode.toString(8)} ${entry.uid}:${entry.gid}`
  if (entry.isSymbolicLink()) return `${head} ${await readlink(path)}`
  return entry.isFile() ? `${head} ${await digestFile(path)}` : head
}

/** What git keeps of a file: owners and all other bits are the clone's. */
async function trackedLine(path: string): Promise<string> {
  const entry = await lstat(path)
  if (entry.isSymbolicLink()) return `link ${await readlink(path)}`
  if (!entry.isFile()) return 'folder'
  return `${(entry.mode & 0o100) === 0 ? 'file' : 'program'} ${await digestFile(path)}`
}

async function listingLine(path: string): Promise<string> {
  const { mode, uid, gid, size, mtimeMs } = await lstat(path)
  const isFolder = (mode & 0o170000) === 0o040000
  // Folders have sizes of their file system's making.
  return `${mode.toString(8)} ${uid}:${gid} ${isFolder ? '' : size} ${Math.floor(mtimeMs / 1000)}`
}
