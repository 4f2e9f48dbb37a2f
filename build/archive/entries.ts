/** Reads files for an archive. */
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { TarEntry } from './tar.ts'

/** What builds and installers leave behind, at any depth. */
const LEFT_OUT: ReadonlySet<string> = new Set(['dist', 'node_modules'])

/**
 * Reads a file, a link, or all of a folder, but for what builds and installers leave behind. `path`
 * is below `from`.
 */
export async function readEntries(from: string, path: string): Promise<readonly TarEntry[]> {
  const place = join(from, path)
  const entry = await lstat(place)
  const isProgram = (entry.mode & 0o100) !== 0
  if (entry.isSymbolicLink()) {
    return [{ path, isProgram, content: { link: await readlink(place) } }]
  }
  if (!entry.isDirectory()) return [{ path, isProgram, content: await readFile(place) }]
  const names = (await readdir(place)).filter((name) => !LEFT_OUT.has(name))
  return (await Promise.all(names.map((name) => readEntries(from, join(path, name))))).flat()
}
