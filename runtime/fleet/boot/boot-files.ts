/** The live environment's files: uploads and installations into the boot directory, and what each look at it has found. */
import { mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  activate,
  decideAlias,
  listSetFiles,
  parseSetFile,
  prune,
  setFileName,
  type CompleteSet,
  type PerArch,
  type ForeignSet,
  perArch,
} from './rules/boot-set.ts'
import { Fault } from '#kit/foundation/fault.ts'
import {
  hasFile,
  listFolder,
  readListedDigest,
  receiveUpload,
  type FolderFile,
  installStaged,
  readBootRecord,
  recoverInstalls,
  STAGED,
  writeBootRecord,
} from './boot-folder.ts'
import {
  look,
  nothingFound,
  versionsOf,
  type ActiveSets,
  type Scan,
  createBootSets,
} from './boot-sets.ts'
import { createQueue } from '#kit/host/queue.ts'
import { makeFolder, removeName } from '#kit/host/folders.ts'

export type BootFile = Pick<FolderFile, 'name' | 'sizeBytes' | 'modifiedAt'>

export interface BootFiles {
  readonly dir: string
  list(): Promise<readonly BootFile[]>
  has(name: string): Promise<boolean>
  /** From memory, so that a boot script waits for no disk. */
  active(): ActiveSets
  /** The file to send for a name that does not exist itself: `ipxe.efi`. */
  alias?(name: string): string | null | Promise<string | null>
  /** Replaces the file by a rename on the same file system; returns the bytes written. */
  save(name: string, bytes: AsyncIterable<Uint8Array>, maxBytes: number): Promise<number>
}

export interface BootFolder extends BootFiles, AsyncDisposable {
  /** Complete sets, newest first. */
  sets(): readonly KnownSet[]
  /** Complete sets proven to be another system's, newest first; they count nowhere. */
  setAside(): readonly ForeignSet[]
  stage(): Promise<string>
  /**
   * All staged files take their places and their sets become active, or nothing changes, even
   * across a crash. `keep`: earlier sets that stay.
   */
  install(staged: string, sets: Partial<PerArch<string>>, keep: number): Promise<void>
  /** A Fault `not-found` if the set is missing. */
  use(set: CompleteSet): Promise<void>
  /** Looks now; otherwise it looks every few seconds. */
  look(): Promise<void>
}

export interface KnownSet extends CompleteSet {
  readonly isActive: boolean
  readonly isChosen: boolean
  readonly isPrevious: boolean
}

export interface BootFolderDependencies {
  readonly dir: string
  changed?(): void
  onSetAside?(set: ForeignSet): void
  now(): Date
}

const LOOK_MS = 5000
/** Ends or clears interrupted installations. Looks every few seconds until disposed of. */
export async function createBootFiles(parts: BootFolderDependencies): Promise<BootFolder> {
  const { dir } = parts
  await makeFolder(dir)
  await recoverInstalls(dir)
  const bootSets = createBootSets(parts)
  const found = nothingFound(await readBootRecord(dir))
  // Looks, installations and swaps run one after another.
  const enqueue = createQueue(1)
  const lookNow = () => look(parts, bootSets, found)

  const timer = setInterval(() => {
    enqueue(lookNow).catch(() => undefined)
  }, LOOK_MS).unref()
  await lookNow()

  return {
    dir,
    async list() {
      await enqueue(lookNow)
      return await listFolder(dir)
    },
    has: (name) => hasFile(dir, name),
    active: () => found.active,
    alias: (name) => decideAlias(name, found.names),
    async save(name, bytes, maxBytes) {
      const sha256 = await readUploadDigest(dir, name)
      const length = await receiveUpload({ dir, name, bytes, maxBytes, sha256 })
      found.arrived.add(name)
      await enqueue(lookNow)
      return length
    },
    sets() {
      const [versions, { active, earlier }] = [versionsOf(found), found.record]
      return found.complete.map((set) => ({
        ...set,
        isActive: versions[set.arch] === set.version,
        isChosen: active[set.arch] === set.version,
        isPrevious: earlier[set.arch][0] === set.version,
      }))
    },
    setAside: bootSets.setAside,
    stage: () => mkdtemp(join(dir, STAGED)),
    install: (staged, sets, keep) =>
      enqueue(async () => {
        const next = prune(activate(found.record, versionsOf(found), sets), keep)
        await bootSets.checkStaged(staged)
        const names = await readdir(staged)
        await installStaged(dir, staged, next.record)
        for (const name of names) found.arrived.add(name)
        found.record = next.record
        await lookNow()
        await removeSets(dir, next.removed, versionsOf(found))
        await lookNow()
      }),
    use: (set) =>
      enqueue(async () => {
        await lookNow()
        bootSets.check(set)
        checkComplete(dir, found, set)
        const next = activate(found.record, versionsOf(found), { [set.arch]: set.version })
        await writeBootRecord(dir, next)
        found.record = next
        await lookNow()
      }),
    look: () => enqueue(lookNow),
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await bootSets[Symbol.asyncDispose]()
      await enqueue(async () => undefined)
    },
  }
}

/** From the checksum list of its set; null: not listed, or in no set. */
async function readUploadDigest(dir: string, name: string): Promise<string | null> {
  const file = parseSetFile(name)
  if (file === null || file.part === 'checksums') return null
  return await readListedDigest(join(dir, setFileName({ ...file, part: 'checksums' })), name)
}

function checkComplete(dir: string, { complete }: Scan, { arch, version }: CompleteSet): void {
  if (complete.some((one) => one.arch === arch && one.version === version)) return
  throw new Fault('not-found', `version ${version} for ${arch} is not in ${dir}`, {
    hint: 'Fetch that release, or upload its files.',
  })
}

async function removeSets(
  dir: string,
  removed: readonly CompleteSet[],
  inForce: PerArch<string | null>,
): Promise<void> {
  for (const set of removed.filter(({ arch, version }) => inForce[arch] !== version)) {
    for (const name of listSetFiles(set)) await removeName(join(dir, name))
  }
}

// The boot directory of the earlier line: one live system, whose files have the same names in every release.

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
