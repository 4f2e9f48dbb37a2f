/** Files that are complete or absent after a crash, and never in the place of one that must stay. */
import { randomBytes } from 'node:crypto'
import { link, open, rename, unlink } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Fault } from '../../core/foundation/fault.ts'
import { systemCodeOf } from '../../core/foundation/system-error.ts'
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

/**
 * Gives a finished file its own name; both paths are on the same file system. A Fault `conflict` where
 * something has that name.
 */
export async function placeNewFile(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
    await unlink(from)
  } catch (thrown) {
    if (!LINKLESS.has(systemCodeOf(thrown) ?? '')) throw refusalOf(thrown, to)
    await claim(to)
    await rename(from, to)
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
