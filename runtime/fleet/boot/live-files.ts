/** The boot directory of the earlier line: one live system, whose files have the same names in every release. */
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { decideAlias, perArch } from './rules/boot-set.ts'
import { makeFolder } from '#kit/host/folders.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { BootFiles, BootFolder } from './boot-files.ts'
import { hasFile, listFolder, receiveUpload } from './boot-folder.ts'
import { installStaged, recoverInstalls, STAGED } from './boot-install.ts'

export type LiveFiles = BootFiles & Pick<BootFolder, 'stage' | 'install'>

/** Finishes an interrupted installation and clears uncommitted ones. */
export async function createLiveFiles(dir: string): Promise<LiveFiles> {
  await makeFolder(dir)
  await recoverInstalls(dir)
  const enqueue = createQueue(1)
  return {
    dir,
    list: () => listFolder(dir),
    has: (name) => hasFile(dir, name),
    // Scripts name the files whether or not they exist.
    active: () => perArch(() => null),
    async alias(name) {
      const files = await listFolder(dir)
      return decideAlias(
        name,
        files.map((file) => file.name),
      )
    },
    save: (name, bytes, maxBytes) => receiveUpload({ dir, name, bytes, maxBytes, sha256: null }),
    stage: () => mkdtemp(join(dir, STAGED)),
    install: (staged) => enqueue(() => installStaged(dir, staged, null)),
  }
}
