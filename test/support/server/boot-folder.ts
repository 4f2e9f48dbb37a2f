/** A boot directory of its own for a test, with files that look as if they had been there for long. */
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Arch } from '#appliance/appliance.ts'
import { netbootStem } from '#appliance/assets.ts'
import {
  createBootFiles,
  type BootFolder,
  type BootFolderDependencies,
} from '#fleet/boot/boot-files.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'

export const sha256 = (bytes: string | Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex')

/** `flasher-netboot-pc-x86_64-v1.0.0.vmlinuz` */
export const partName = (version: string, part: string, arch: Arch = 'x86_64'): string =>
  `${netbootStem(arch, version)}.${part}`

/** Removed at the end. */
export async function makeBootFolder() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-boot-'))
  async function put(name: string, text: string) {
    await writeFile(join(dir, name), text)
    await utimes(join(dir, name), 1000, 1000)
  }
  return {
    dir,
    put,
    names: async () => (await readdir(dir)).toSorted(),
    /** What `cp` of a release leaves; the squashfs holds the version. */
    async putTrio(version: string, arch: Arch = 'x86_64') {
      for (const part of TRIO) await put(partName(version, part, arch), `${part} ${version}`)
      const lines = TRIO.map(
        (part) => `${sha256(`${part} ${version}`)}  ${partName(version, part, arch)}\n`,
      )
      await put(partName(version, 'sha256', arch), lines.join(''))
    },
    open: (more: Partial<BootFolderDependencies> = {}): Promise<BootFolder> =>
      createBootFiles({ dir, now: () => new Date(), ...more }),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

export type TestBootFolder = Awaited<ReturnType<typeof makeBootFolder>>

export async function* inChunks(text: string, size = 3): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size))
}
