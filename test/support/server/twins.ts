/** Small stand-ins of services, for tests whose subject is something else. */
import { createWriteStream } from 'node:fs'
import { access, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Fault } from '../../../runtime/kit/foundation/fault.ts'
import type { ActiveSets } from '../../../runtime/fleet/boot/boot-scan.ts'
import type { BootFiles } from '../../../runtime/fleet/boot/boot-files.ts'

/** A boot directory; its active set is that of the files named here. */
export function createBootFolder(dir: string): BootFiles {
  const sets: ActiveSets = {
    x86_64: {
      arch: 'x86_64',
      version: '1.2.3',
      vmlinuz: 'flasher-netboot-pc-x86_64-v1.2.3.vmlinuz',
      initrd: 'flasher-netboot-pc-x86_64-v1.2.3.initrd',
      squashfs: 'flasher-netboot-pc-x86_64-v1.2.3.squashfs',
      squashfsSha256: 'd'.repeat(64),
    },
    arm64: null,
  }
  return {
    dir,
    active: () => sets,
    async list() {
      const names = await readdir(dir)
      return await Promise.all(
        names.map(async (name) => {
          const { size, mtime } = await stat(join(dir, name))
          return { name, sizeBytes: size, modifiedAt: mtime.toISOString() }
        }),
      )
    },
    has: (name) =>
      access(join(dir, name)).then(
        () => true,
        () => false,
      ),
    async save(name, bytes) {
      const partial = join(dir, `.${name}.partial`)
      let length = 0
      try {
        await pipeline(async function* count() {
          for await (const chunk of bytes) {
            length += chunk.byteLength
            yield chunk
          }
        }, createWriteStream(partial))
        await rename(partial, join(dir, name)).catch(() => {
          throw new Fault('conflict', `${name} is a folder`)
        })
      } catch (error) {
        await rm(partial, { force: true })
        throw error
      }
      return length
    },
  }
}
