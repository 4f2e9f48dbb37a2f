/** A lock between processes of this machine, which the kernel releases when its holder dies. */
import { appendFile, mkdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname } from 'node:path'

/** Null: another process has it. A socket in the kernel's name space leaves nothing behind. */
export function takeDriverLock(name: string): Promise<AsyncDisposable | null> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null)
      else reject(error)
    })
    server.listen(`\0${name}`, () => resolve(server.unref()))
  })
}

/** A program that died is started again, but not for ever. */
const MAX_TRIES = 3

/** False: no more tries. True where they cannot be counted. Only for the holder of the lock. */
export async function startTry(path: string): Promise<boolean> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await appendFile(path, TRY)
    return (await stat(path)).size <= MAX_TRIES
  } catch {
    return true
  }
}

/** A try that came to any end is the last one. */
export const endTry = (path: string): Promise<void> =>
  writeFile(path, TRY.repeat(MAX_TRIES)).catch(() => undefined)

const TRY = '.'
