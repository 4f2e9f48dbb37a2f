/** Renders a tar archive whose bytes depend on its content only. */
import { gzipSync } from 'node:zlib'
import { packTar } from 'modern-tar'

export interface TarEntry {
  /** Below the archive's folder, with slashes. */
  readonly path: string
  readonly isProgram: boolean
  /** A file has its bytes here, a symbolic link the path that it names. */
  readonly content: Buffer | { readonly link: string }
}

interface TarOptions {
  /** All entries lie in this folder. */
  readonly folder: string
  /** Seconds since 1970: the time of all entries. */
  readonly epoch: number
}

/**
 * Packs entries, sorted by path, and compresses them with gzip; Node writes neither a name nor a
 * time into its header.
 */
export async function renderTarball(
  entries: readonly TarEntry[],
  { folder, epoch }: TarOptions,
): Promise<Buffer> {
  const sorted = entries.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const tar = await packTar(
    sorted.map(({ path, isProgram, content }) => {
      const owned = {
        name: `${folder}/${path}`,
        mtime: new Date(epoch * 1000),
        uname: 'root',
        gname: 'root',
      }
      if (!Buffer.isBuffer(content)) {
        const linkname = content.link
        return { header: { ...owned, type: 'symlink', size: 0, mode: 0o777, linkname } }
      }
      const mode = isProgram ? 0o755 : 0o644
      return { header: { ...owned, type: 'file', size: content.length, mode }, body: content }
    }),
  )
  return gzipSync(tar, { level: 9 })
}
