/** One process of several does something: a lock that the kernel takes back from whoever dies. */
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname } from 'node:path'

/**
 * Null: another process of this machine holds the lock of that name. It is a socket in the kernel's
 * own name space, so that no file is left of one who was killed.
 */
export function takeDriverLock(name: string): Promise<AsyncDisposable | null> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null)
      else reject(error)
    })
    server.listen(`\0${name}`, () => {
      server.unref()
      resolve({
        [Symbol.asyncDispose]: () =>
          new Promise((done) => {
            server.close(() => done())
          }),
      })
    })
  })
}

/** True for the first who asks since that file was made anew; where none can be made, for everybody. */
export async function isFirst(path: string): Promise<boolean> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, '', { flag: 'wx' })
    return true
  } catch (thrown) {
    return !(thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST')
  }
}
