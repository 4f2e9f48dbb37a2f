/** A small disk of its own for a folder, which can be filled (tmpfs, root). */
import { execFileSync } from 'node:child_process'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

export type SmallDisk = Awaited<ReturnType<typeof mountDisk>>

const MIB = 2 ** 20
const FILLING = 'filling'

/** `mib`: its size. `owner`: a user's name; absent: root. */
export async function mountDisk(folder: string, mib: number, owner = 'root') {
  await mkdir(folder, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=755`, 'tmpfs', folder])
  execFileSync('chown', [owner, folder])
  const filling = join(folder, FILLING)
  return {
    /** Writes until nothing more fits. */
    async fill() {
      await using file = await open(filling, 'w')
      const piece = Buffer.alloc(MIB)
      for (let size = piece.length; size >= 512; size = Math.floor(size / 2)) {
        try {
          for (;;) await file.write(piece, 0, size)
        } catch {
          // Half of it may fit still.
        }
      }
    },
    empty: () => rm(filling, { force: true }),
    [Symbol.asyncDispose]: async () => {
      execFileSync('umount', ['--lazy', folder])
    },
  }
}
