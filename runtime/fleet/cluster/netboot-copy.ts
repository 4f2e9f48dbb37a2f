/** Copies what the row of the live systems names from other servers: each file by its digest, all of them put in place together. */
import { constants, copyFile as cloneFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BootFolder } from '#fleet/boot/boot-files.ts'
import { describeFullDisk, requireSpace } from '#fleet/state/disk-space.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { moveName, removeTree } from '#kit/host/folders.ts'
import { bringFile, openIncoming, type IncomingFiles } from '#kit/host/partial-files.ts'
import type { BootArch } from '#fleet/boot/rules/boot-set.ts'
import type { SharedBootFile, SharedNetboot } from './rules/shared-netboot.ts'

export interface NetbootSource {
  readonly name: string
  readonly url: string
}

/** From offset `from`. Rejects, or ends early, if that server lacks the file. */
export type OpenSharedFile = (
  url: string,
  file: { readonly sha256: string; readonly from: number },
  signal: AbortSignal,
) => AsyncIterable<Uint8Array>

interface NetbootCopyDependencies {
  readonly bootFiles: Pick<BootFolder, 'dir' | 'stage' | 'install'>
  readonly openFile: OpenSharedFile
}

interface NetbootCopyOrder {
  readonly wanted: SharedNetboot
  readonly missing: readonly SharedBootFile[]
  readonly sources: readonly NetbootSource[]
  readonly choices: Partial<Record<BootArch, string>>
  readonly keep: number
  readonly signal: AbortSignal
}

const FOLDER = '.copying'
const SPARE_BYTES = 16 * 2 ** 20

/** Rejects with a Fault that names file and server; nothing changes, the next copy resumes. */
export async function copyNetboot(
  parts: NetbootCopyDependencies,
  order: NetbootCopyOrder,
): Promise<void> {
  const { bootFiles } = parts
  const { wanted, missing, choices, keep, signal } = order
  const bytes = missing.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  if (bytes > 0) await requireSpace(bootFiles.dir, bytes + SPARE_BYTES, 'The live system')
  const incoming = await openIncoming(join(bootFiles.dir, FOLDER), wanted.files)
  const staged = await bootFiles.stage()
  try {
    for (const file of missing) await copyFile(parts, order, incoming, file)
    await gather(missing, incoming, staged)
    signal.throwIfAborted()
    await bootFiles.install(staged, choices, keep)
    await removeTree(incoming.folder)
  } catch (thrown) {
    throw (await describeFullDisk(thrown, bootFiles.dir)) ?? thrown
  } finally {
    await removeTree(staged)
  }
}

/** Two names may have one content, such as a boot loader and its alias. */
async function gather(
  files: readonly SharedBootFile[],
  incoming: IncomingFiles,
  staged: string,
): Promise<void> {
  const moved = new Map<string, string>()
  for (const { name, sha256 } of files) {
    const [path, first] = [join(staged, name), moved.get(sha256)]
    if (first === undefined) await moveName(incoming.pathOf(sha256), path)
    else await cloneFile(first, path, constants.COPYFILE_FICLONE)
    moved.set(sha256, path)
  }
}

async function copyFile(
  parts: NetbootCopyDependencies,
  order: NetbootCopyOrder,
  incoming: IncomingFiles,
  file: SharedBootFile,
): Promise<void> {
  const refusals: string[] = []
  for (const source of order.sources) {
    try {
      return await copyFrom(parts, order, { incoming, file, source })
    } catch (thrown) {
      order.signal.throwIfAborted()
      const isOurs = (await describeFullDisk(thrown, parts.bootFiles.dir)) !== null
      if (isOurs) throw thrown
      refusals.push(`${source.name}: ${renderError(thrown)}`)
    }
  }
  throw new Fault('input-missing', `${file.name} could not be copied (${refusals.join('; ')})`)
}

interface OneFileCopy {
  readonly incoming: IncomingFiles
  readonly file: SharedBootFile
  readonly source: NetbootSource
}

async function copyFrom(
  { openFile }: NetbootCopyDependencies,
  { signal }: NetbootCopyOrder,
  { incoming, file, source }: OneFileCopy,
): Promise<void> {
  const { sizeBytes, sha256 } = file
  const found = await bringFile(incoming, file, {
    signal,
    async *read(from) {
      let end = from
      for await (const piece of openFile(source.url, { sha256, from }, signal)) {
        end += piece.length
        yield piece
      }
      if (end < sizeBytes) throw broken(`it ended after ${end} of ${sizeBytes} bytes`)
    },
    refuseLonger: () => broken('it sends more bytes than the file has'),
  })
  if (found === null) return
  throw new Fault('digest-mismatch', `its ${sizeBytes} bytes are others than those of the digest`)
}

const broken = (words: string) => new Fault('source-broken', words)
