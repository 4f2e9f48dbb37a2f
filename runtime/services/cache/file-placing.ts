/** Puts a finished file into its folder under its own name, and never in the place of another one. */
import { link, open, rename, unlink } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Fault } from '../../core/foundation/fault.ts'
import { systemCodeOf } from '../../core/foundation/system-error.ts'
import { syncFolder } from '../host/atomic-file.ts'

/** Both paths are on the same file system. A Fault `conflict` where something has that name. */
export async function placeNewFile(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
    await unlink(from)
  } catch (thrown) {
    if (!LINKLESS.has(systemCodeOf(thrown) ?? '')) throw refusalOf(thrown, to)
    await claim(to)
    await rename(from, to)
  }
  await syncFolder(dirname(to))
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
