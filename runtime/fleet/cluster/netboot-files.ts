/** What lies in the boot directory of a server: its sets, and the digests of their files, each computed once. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { BootFolder } from '#fleet/boot/boot-files.ts'
import { readListedDigest } from '#fleet/boot/boot-folder.ts'
import {
  BOOT_ARCHS,
  listGiven,
  listSetFiles,
  parseSetFile,
  perArch,
  setFileName,
} from '#fleet/boot/rules/boot-set.ts'
import { hashStart } from '#kit/host/file-hash.ts'
import { ifMissing } from '#kit/foundation/system-error.ts'
import type { LocalNetboot, SharedBootFile } from './rules/shared-netboot.ts'

/** A file may still be written until this age, in milliseconds. */
const REST_MS = 3000

interface KnownDigest {
  readonly mark: string
  readonly sha256: string
}

type NetbootFolder = Pick<BootFolder, 'dir' | 'sets' | 'list'>

/** A new size, time or inode makes it read a file again. */
export function createNetbootFiles(folder: NetbootFolder, signal: AbortSignal) {
  const digests = new Map<string, KnownDigest>()

  /** Null: gone, or being written. */
  async function describe(name: string): Promise<SharedBootFile | null> {
    const handle = await open(join(folder.dir, name), 'r').catch(ifMissing(null))
    if (handle === null) return null
    await using file = handle
    const [mark, { size, mtimeMs }] = [await readMark(file), await file.stat()]
    const known = digests.get(name)
    if (known?.mark === mark) return { name, sizeBytes: size, sha256: known.sha256 }
    const age = Date.now() - mtimeMs
    // A future time says nothing.
    if (age >= 0 && age < REST_MS) return null
    const sha256 = (await hashStart(file, size, signal)).digest('hex')
    if ((await readMark(file)) !== mark) return null
    digests.set(name, { mark, sha256 })
    return { name, sizeBytes: size, sha256 }
  }

  return {
    /** `others`: more names of interest. Null: a file of a set is being written. */
    async read(others: readonly string[]): Promise<LocalNetboot | null> {
      const names = (await folder.list()).map(({ name }) => name)
      const sets = folder.sets()
      const versions = perArch(
        (arch) => sets.find((set) => set.arch === arch && set.isActive)?.version ?? null,
      )
      const given = listGiven(names, versions)
      const known = new Map<string, SharedBootFile>()
      const unknown: string[] = []
      for (const name of new Set([...given, ...others.filter((each) => names.includes(each))])) {
        const file = await describe(name)
        if (file === null) unknown.push(name)
        else known.set(name, file)
      }
      if (unknown.some((name) => given.includes(name))) return null
      return {
        versions,
        files: given.flatMap((name) => known.get(name) ?? []),
        known,
        complete: sets,
        isChosen: perArch((arch) =>
          sets.some((set) => set.arch === arch && set.isActive && set.isChosen),
        ),
        damaged: await listDamaged(folder.dir, versions, known),
      }
    },
    /** For files that were just compared and put in place. */
    async trust(compared: readonly SharedBootFile[]): Promise<void> {
      for (const { name, sha256 } of compared) {
        const handle = await open(join(folder.dir, name), 'r').catch(ifMissing(null))
        if (handle === null) continue
        await using file = handle
        digests.set(name, { mark: await readMark(file), sha256 })
      }
    },
    /** Null: no file has this digest now. */
    async find(sha256: string): Promise<string | null> {
      for (const [name, known] of digests) {
        if (known.sha256 !== sha256) continue
        const path = join(folder.dir, name)
        const handle = await open(path, 'r').catch(ifMissing(null))
        if (handle === null) continue
        await using file = handle
        if ((await readMark(file)) === known.mark) return path
      }
      return null
    },
  }
}

async function readMark(file: {
  stat(options: { bigint: true }): Promise<{ size: bigint; mtimeNs: bigint; ino: bigint }>
}): Promise<string> {
  const { size, mtimeNs, ino } = await file.stat({ bigint: true })
  return `${size} ${mtimeNs} ${ino}`
}

/** Their digest differs from the list beside them. */
async function listDamaged(
  dir: string,
  versions: LocalNetboot['versions'],
  known: ReadonlyMap<string, SharedBootFile>,
): Promise<readonly string[]> {
  const damaged: string[] = []
  for (const arch of BOOT_ARCHS) {
    const version = versions[arch]
    if (version === null) continue
    const list = join(dir, setFileName({ arch, version, part: 'checksums' }))
    for (const name of listSetFiles({ arch, version })) {
      const file = known.get(name)
      if (file === undefined || parseSetFile(name)?.part === 'checksums') continue
      const listed = await readListedDigest(list, name)
      if (listed !== null && listed !== file.sha256) damaged.push(name)
    }
  }
  return damaged
}
