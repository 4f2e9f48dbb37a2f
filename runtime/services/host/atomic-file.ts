/** Writes small files atomically: after a crash a file is complete or absent. */
import { randomBytes } from 'node:crypto'
import { open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from './folders.ts'

/** Replaces a file: written beside it, made durable, and put in its place; its folder is made. */
export async function replaceFile(
  path: string,
  content: string | Uint8Array | AsyncIterable<string>,
  mode: number = 0o644,
): Promise<void> {
  const folder = dirname(path)
  await makeFolder(folder)
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await using handle = await open(temporary, 'wx', mode)
    await handle.writeFile(content)
    await handle.sync()
    await rename(temporary, path)
  } catch (thrown) {
    // Best effort: what counts is why it could not be written.
    await unlink(temporary).catch(() => {})
    throw thrown
  }
  await syncFolder(folder)
}

/** What was renamed into a folder, or removed from it, outlives a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}
