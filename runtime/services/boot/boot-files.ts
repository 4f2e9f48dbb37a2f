/** The live environment's files: what is in the boot directory, and which set is active. */
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  activate,
  BOOT_ARCHS,
  decideActive,
  decideAlias,
  prune,
  setFileName,
  TRIO,
  type BootArch,
  type CompleteSet,
  type PerArch,
  type SetAside,
  type SetFile,
} from '../../core/boot/boot-set.ts'
import { Fault } from '../../core/foundation/fault.ts'
import { listFolder, readListedDigest, receiveUpload } from './boot-folder.ts'
import {
  installStaged,
  readBootRecord,
  recoverInstalls,
  STAGED,
  UPLOAD,
  writeBootRecord,
} from './boot-install.ts'
import { createBootSets } from './boot-sets.ts'
import { makeFolder } from '../host/folders.ts'

export interface BootFile {
  readonly name: string
  readonly sizeBytes: number
  /** ISO time of the file's last change. */
  readonly modifiedAt: string
}

/** The files that boot scripts name; swapped as one. */
interface BootSet {
  readonly arch: BootArch
  /** The release they came with; null for files that were uploaded by hand. */
  readonly version: string | null
  readonly vmlinuz: string
  readonly initrd: string
  readonly squashfs: string
  /** Of the squashfs, 64 hexadecimal digits; null when nobody said. */
  readonly squashfsSha256: string | null
}

export type ActiveSets = PerArch<BootSet | null>

export interface BootFiles {
  readonly dir: string
  list(): Promise<readonly BootFile[]>
  has(name: string): Promise<boolean>
  /** Which set the scripts name now; kept in memory, so that a boot script waits for no disk. */
  active(): ActiveSets
  /** The file that a name stands for where there is none of that name: `ipxe.efi`. */
  alias?(name: string): string | null
  /** Streams to a temporary file on the same file system, then renames; returns the bytes written. */
  save(name: string, bytes: AsyncIterable<Uint8Array>, mostBytes: number): Promise<number>
}

/** What fetching releases and the Netboot page need besides. */
export interface BootFolder extends BootFiles, AsyncDisposable {
  /** The complete sets that lie there, newest first, and what is known of each. */
  sets(): readonly KnownSet[]
  /** The complete sets that are proven to be another system's, newest first; they count nowhere. */
  setAside(): readonly SetAside[]
  /** An empty folder on the same file system, for files that are to be installed. */
  stage(): Promise<string>
  /**
   * All files of the staged folder take their places and its sets become active, or, whatever
   * stops us, nothing changes. `keep`: earlier sets that stay.
   */
  install(staged: string, sets: Partial<PerArch<string>>, keep: number): Promise<void>
  /** Puts a set that lies there in force. A Fault `not-found` where it does not. */
  use(set: CompleteSet): Promise<void>
  /** Looks anew, as it does by itself every few seconds. */
  look(): Promise<void>
}

export interface KnownSet extends CompleteSet {
  readonly isActive: boolean
  /** The one that a roll-back returns to. */
  readonly isPrevious: boolean
}

export interface BootFolderDependencies {
  readonly dir: string
  /** After a look that found other sets in force than before. */
  changed?(): void
  /** Called once for each set that was found to be another system's. */
  onSetAside?(set: SetAside): void
  now(): Date
}

const LOOK_MS = 5000
/** A file copied by hand counts once it has not changed for so long. */
const REST_MS = 3000

const PARTS = [...TRIO, 'checksums'] as const

/** Makes the folder; finishes an installation that was cut off, and clears what never became one. */
export async function createBootFiles(parts: BootFolderDependencies): Promise<BootFolder> {
  const { dir, changed, now } = parts
  await makeFolder(dir)
  await recoverInstalls(dir)
  let record = await readBootRecord(dir)
  let names: readonly string[] = []
  let complete: readonly CompleteSet[] = []
  const bootSets = createBootSets(parts)
  let active: ActiveSets = { x86_64: null, arm64: null }
  /** Files that came whole, by rename: they need not rest before they count. */
  const whole = new Set<string>()
  let last: Promise<unknown> = Promise.resolve()

  /** One after another: looks, installations and swaps never see each other's middle. */
  function enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  async function lookNow(): Promise<void> {
    const files = await listFolder(dir)
    const at = now().getTime()
    const spared = new Set(
      BOOT_ARCHS.flatMap((arch) =>
        [active[arch]?.version, record.active[arch]].flatMap((version) =>
          version ? TRIO.map((part) => setFileName({ arch, version, part })) : [],
        ),
      ),
    )
    const ripe = files.filter(
      ({ name, changedMs }) => whole.has(name) || spared.has(name) || at - changedMs >= REST_MS,
    )
    names = files.map(({ name }) => name)
    complete = await bootSets.choose(ripe, record)
    const found = { x86_64: await readActive('x86_64'), arm64: await readActive('arm64') }
    const isNew = JSON.stringify(found) !== JSON.stringify(active)
    active = found
    if (isNew) changed?.()
  }

  async function readActive(arch: BootArch): Promise<BootSet | null> {
    const version = decideActive(arch, record, complete)
    if (version === null) return null
    const name = (part: SetFile['part']) => setFileName({ arch, version, part })
    const [vmlinuz, initrd, squashfs] = [name('vmlinuz'), name('initrd'), name('squashfs')]
    const squashfsSha256 = await readListedDigest(join(dir, name('checksums')), squashfs)
    return { arch, version, vmlinuz, initrd, squashfs, squashfsSha256 }
  }

  const inForce = (): PerArch<string | null> => ({
    x86_64: active.x86_64?.version ?? null,
    arm64: active.arm64?.version ?? null,
  })

  async function removeSets(removed: readonly CompleteSet[]): Promise<void> {
    const spared = inForce()
    for (const { arch, version } of removed.filter((set) => spared[set.arch] !== set.version)) {
      for (const part of PARTS) {
        await rm(join(dir, setFileName({ arch, version, part })), { force: true })
      }
    }
  }

  const timer = setInterval(() => {
    // Best effort: the next look comes.
    enqueue(lookNow).catch(() => undefined)
  }, LOOK_MS).unref()
  await lookNow()

  return {
    dir,
    async list() {
      await enqueue(lookNow)
      const files = await listFolder(dir)
      return files.map(({ name, sizeBytes, modifiedAt }) => ({ name, sizeBytes, modifiedAt }))
    },
    async has(name) {
      return stat(join(dir, name)).then(
        (found) => found.isFile(),
        () => false,
      )
    },
    active: () => active,
    alias: (name) => decideAlias(name, names),
    async save(name, bytes, mostBytes) {
      const length = await receiveUpload({ dir, name, bytes, mostBytes, prefix: UPLOAD })
      whole.add(name)
      await enqueue(lookNow)
      return length
    },
    sets() {
      const [versions, earlier] = [inForce(), record.earlier]
      return complete.map((set) => ({
        ...set,
        isActive: versions[set.arch] === set.version,
        isPrevious: earlier[set.arch][0] === set.version,
      }))
    },
    setAside: bootSets.setAside,
    stage: () => mkdtemp(join(dir, STAGED)),
    install: (staged, sets, keep) =>
      enqueue(async () => {
        const swapped = prune(activate(record, inForce(), sets), keep)
        await bootSets.checkStaged(staged)
        const staying = await readdir(staged)
        await installStaged(dir, staged, swapped.record)
        for (const name of staying) whole.add(name)
        record = swapped.record
        await lookNow()
        await removeSets(swapped.removed)
        await lookNow()
      }),
    use: (set) =>
      enqueue(async () => {
        await lookNow()
        const { arch, version } = set
        bootSets.check(set)
        if (!complete.some((one) => one.arch === arch && one.version === version)) {
          throw new Fault('not-found', `version ${version} for ${arch} does not lie in ${dir}`, {
            hint: 'Fetch that release, or upload its files.',
          })
        }
        const next = activate(record, inForce(), { [arch]: version })
        await writeBootRecord(dir, next)
        record = next
        await lookNow()
      }),
    look: () => enqueue(lookNow),
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await bootSets[Symbol.asyncDispose]()
      await last
    },
  }
}
