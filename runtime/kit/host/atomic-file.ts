/** Files that are complete or absent after a crash, and never in the place of one that must stay. */
import { randomBytes } from 'node:crypto'
import { open, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { systemCodeOf } from '#kit/foundation/system-error.ts'
import { linkName, makeFolder, moveName, removeName } from './folders.ts'

/**
 * Replaces a file: the content is written beside it, made durable, and put in its place; its folder
 * is made. Others may read it only where `mode` lets them: what we keep holds addresses with
 * passwords in them. What root writes belongs to whom the folder belongs. Rejects with Node's error
 * where it cannot be written; the file then stays as it was.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array | AsyncIterable<string>,
  mode: number = 0o600,
): Promise<void> {
  const folder = dirname(path)
  await makeFolder(folder)
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await using handle = await open(temporary, 'wx', mode)
    await adopt(handle, folder)
    await handle.writeFile(content)
    await handle.sync()
    await moveName(temporary, path)
  } catch (thrown) {
    // Best effort: what counts is why it could not be written.
    await removeName(temporary).catch(() => {})
    throw thrown
  }
}

/** A server that runs as another user must be able to read what a command of root's wrote. */
async function adopt(handle: FileHandle, folder: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await stat(folder)
  // Best effort: not every file system knows owners.
  if (uid !== 0) await handle.chown(uid, gid).catch(() => undefined)
}

/**
 * Gives a finished file its own name; both paths are on the same file system. Rejects with a Fault
 * `conflict` where something has that name.
 */
export async function moveNewFile(from: string, to: string): Promise<void> {
  try {
    await linkName(from, to)
    await removeName(from)
  } catch (thrown) {
    if (!LINKLESS.has(systemCodeOf(thrown) ?? '')) throw refusalOf(thrown, to)
    await claim(to)
    await moveName(from, to)
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
