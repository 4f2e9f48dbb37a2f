/** Digests of files and folders: by content for cache keys, by listing to notice changes quickly. */
import { createHash, hash as hashWhole } from 'node:crypto'
import {
  createReadStream,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type BigIntStats,
} from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { collectImports } from './imports.ts'

/** Computes the SHA-256 of a file, in hexadecimal. */
export async function digestFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 2 ** 20 }), hash)
  return hash.digest('hex')
}

/** A file's content; a folder's names, modes, owners, links and contents. */
export async function digestPath(path: string): Promise<string> {
  const entry = await lstat(path)
  return entry.isDirectory() ? await digestFolder(path, digestLine) : await digestFile(path)
}

/**
 * Digests a folder's names, modes, owners, sizes and times to the nanosecond, among them the time
 * of the last change, which no program can set; of a file the content, because reading one is
 * quick.
 */
export async function digestListing(path: string): Promise<string> {
  const entry = await lstat(path)
  return entry.isDirectory() ? await digestFolder(path, listingLine) : await digestFile(path)
}

/** Bytes of a file, or of all files below a folder. */
export function measurePath(path: string): number {
  const entry = lstatSync(path)
  if (!entry.isDirectory()) return entry.size
  const files = [...walk(path, '')].map((name) => lstatSync(join(path, name)))
  return files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)
}

/**
 * Digests a path below `checkout` or an absolute one by content; a TypeScript program includes all
 * that it imports. The digest is the same in every checkout, whoever owns it.
 */
export async function digestSource(path: string, checkout: string): Promise<string> {
  const read = (file: string) => readFileSync(join(checkout, file), 'utf8')
  if (!path.endsWith('.ts')) return await digestTracked(resolve(checkout, path))
  const hash = createHash('sha256')
  for (const file of collectImports([path], read).files) hash.update(`${file}\0${read(file)}\0`)
  return hash.digest('hex')
}

async function digestTracked(path: string): Promise<string> {
  const entry = await lstat(path)
  return entry.isDirectory() ? await digestFolder(path, trackedLine) : await digestFile(path)
}

// Synchronous: for thousands of small files, awaiting each takes several times longer than reading it.
type Line = (path: string, entry: BigIntStats) => string | Promise<string>

async function digestFolder(root: string, line: Line): Promise<string> {
  const hash = createHash('sha256')
  // Symbolic links on the way to the folder make no difference.
  const top = realpathSync(root)
  for (const name of walk(top, '')) {
    const path = join(top, name)
    const said = line(path, lstatSync(path, { bigint: true }))
    hash.update(`${name}\0${typeof said === 'string' ? said : await said}\n`)
  }
  return hash.digest('hex')
}

/** Paths below `top`, folders before what lies in them, sorted by code unit. */
function* walk(top: string, folder: string): Generator<string> {
  const entries = readdirSync(join(top, folder), { withFileTypes: true })
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    yield path
    if (entry.isDirectory()) yield* walk(top, path)
  }
}

const digestLine: Line = async (path, entry) => {
  const head = `${entry.mode.toString(8)} ${entry.uid}:${entry.gid}`
  if (entry.isSymbolicLink()) return `${head} ${readlinkSync(path)}`
  return entry.isFile() ? `${head} ${await digestContent(path, entry)}` : head
}

/** What git tracks of a file; owners and other mode bits differ between clones. */
const trackedLine: Line = async (path, entry) => {
  if (entry.isSymbolicLink()) return `link ${readlinkSync(path)}`
  if (!entry.isFile()) return 'folder'
  return `${(entry.mode & 0o100n) === 0n ? 'file' : 'program'} ${await digestContent(path, entry)}`
}

const listingLine: Line = (_path, entry) => {
  const { mode, uid, gid, mtimeNs, ctimeNs } = entry
  // The size of a folder depends on the file system.
  const size = entry.isDirectory() ? '' : entry.size
  return `${mode.toString(8)} ${uid}:${gid} ${size} ${mtimeNs} ${ctimeNs}`
}

/** Larger files, in bytes, are streamed. */
const AT_ONCE = 2 ** 24

const digestContent = (path: string, { size }: BigIntStats) =>
  size <= AT_ONCE ? hashWhole('sha256', readFileSync(path)) : digestFile(path)
