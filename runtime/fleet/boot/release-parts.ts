/** Partial files of a release: the next fetch resumes what a cancelled one has downloaded. */
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Artifact } from './rules/release.ts'
import { hashStart } from '../../kit/host/file-hash.ts'
import type { Source } from '../../engine/image/sources/source.ts'
import { makeFolder, moveName, removeName, removeTree } from '../../kit/host/folders.ts'

/** Hidden, so that nobody can fetch it below `/boot/`. */
const FOLDER = '.fetching'

export type PartFiles = Awaited<ReturnType<typeof openReleaseParts>>

interface PartHooks {
  readonly signal: AbortSignal
  /** Called where anything is missing yet. */
  open(): Promise<Source>
  onBytes(bytes: number): void
  /** Throws for a file that is longer than it should be. */
  onExcess(): never
}

/** `files`: what is to be fetched; parts of anything else are removed. */
export async function openReleaseParts(bootDir: string, files: readonly Artifact[]) {
  const folder = join(bootDir, FOLDER)
  await makeFolder(folder)
  const wanted = new Set(files.map(({ sha256 }) => sha256))
  for (const name of await readdir(folder)) {
    if (!wanted.has(name)) await removeTree(join(folder, name))
  }

  /**
   * Brings one file, from where the last try of the same one ended; `onBytes` hears how much of it
   * is there. Returns its digest: when it is not the right one, nothing is there.
   */
  async function bring(file: Artifact, hooks: PartHooks): Promise<string> {
    const path = join(folder, file.sha256)
    const { found, from } = await fill(path, file, hooks)
    if (found === file.sha256) return found
    await removeName(path)
    // What was there may be what is wrong.
    return from === 0 ? found : await bring(file, hooks)
  }

  return {
    bring,
    /** Puts the files, all of which are there, into a folder under their names. */
    async moveInto(target: string) {
      for (const { name, sha256 } of files) await moveName(join(folder, sha256), join(target, name))
    },
    /** Nothing of it is needed any more. */
    clear: () => removeTree(folder),
  }
}

async function fill(path: string, file: Artifact, hooks: PartHooks) {
  await using handle = await open(path, 'a+', 0o644)
  const { size } = await handle.stat()
  // Something longer than the file is no part of it.
  const from = size > file.sizeBytes ? 0 : size
  await handle.truncate(from)
  const hash = await hashStart(handle, from, hooks.signal)
  let done = from
  if (done > 0) hooks.onBytes(done)
  if (done === file.sizeBytes) return { found: hash.digest('hex'), from }
  await using source = await hooks.open()
  for await (const chunk of source.stream(from)) {
    done += chunk.length
    if (done > file.sizeBytes) hooks.onExcess()
    const written = handle.writeFile(chunk)
    hash.update(chunk) // Meanwhile.
    await written
    hooks.onBytes(done)
  }
  await handle.sync()
  return { found: hash.digest('hex'), from }
}
