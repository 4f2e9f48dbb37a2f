/** Lists the complete sets of the boot directory, without those whose initrd belongs to another system. */
import { join } from 'node:path'
import {
  listComplete,
  parseSetFile,
  renderForeign,
  setFileName,
  type BootRecord,
  type CompleteSet,
  type ForeignSet,
  BOOT_ARCHS,
  decideActive,
  perArch,
  TRIO,
  type BootArch,
  type PerArch,
  type SetFile,
  decideAlias,
  listSetFiles,
  createNewcWalker,
  type NewcStep,
} from './rules/boot-set.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { hasFile, listFolder, type FolderFile, readListedDigest } from './boot-folder.ts'
import type { LiveSet } from './rules/boot-decision.ts'
import { createReadStream } from 'node:fs'
import { constants, copyFile, readdir, stat, utimes } from 'node:fs/promises'
import { GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { UPLOAD } from '#kit/host/partial-files.ts'
import { makeFolder, moveName, removeName } from '#kit/host/folders.ts'
import { createDecoders, type Decoders } from '#engine/image/formats.ts'
import { createQueue } from '#kit/host/queue.ts'
import { createShell } from '#kit/host/shell.ts'
import { settle } from '#kit/host/watch.ts'
import { ROOT_MANIFEST } from '#appliance/initrd.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { openFileSource, type Source } from '#engine/image/sources/source.ts'

type BootSets = ReturnType<typeof createBootSets>

interface BootSetsDependencies {
  readonly dir: string
  onSetAside?(set: ForeignSet): void
}

/** Our own initrds take some milliseconds, another system's a second or two. */
const WAIT_MS = 2000
/** An installation waits for the result. */
const WAIT_STAGED_MS = 60_000

export function createBootSets({ dir, onSetAside }: BootSetsDependencies) {
  const judge = createInitrdJudge()
  let aside: readonly ForeignSet[] = []

  const find = ({ arch, version }: CompleteSet) =>
    aside.find((set) => set.arch === arch && set.version === version)

  function note(sets: readonly ForeignSet[]): void {
    const added = sets.filter((set) => find(set) === undefined)
    aside = sets
    for (const set of added) onSetAside?.(set)
  }

  return {
    /** Newest first. A set not judged in time waits for the next call, unless it was in force. */
    async choose(
      files: readonly FolderFile[],
      record: BootRecord,
    ): Promise<readonly CompleteSet[]> {
      const complete = listComplete(files.map(({ name }) => name))
      const byName = new Map(files.map((file) => [file.name, file]))
      const kindOf = (set: CompleteSet) => {
        const file = byName.get(initrdOf(set))
        return file === undefined ? null : judge.kindOf({ ...file, path: join(dir, file.name) })
      }
      if (complete.map(kindOf).includes(null)) await judge.settle(WAIT_MS)
      const judged = complete.map((set) => ({ set, kind: kindOf(set) }))
      note(
        judged
          .filter(({ kind }) => kind === 'foreign')
          .map(({ set }) => ({ ...set, reason: renderForeign(initrdOf(set)) })),
      )
      return judged
        .filter(({ set, kind }) =>
          kind === null ? record.active[set.arch] === set.version : kind !== 'foreign',
        )
        .map(({ set }) => set)
    },
    setAside: () => aside,
    /** Throws a Fault `conflict` for a set of another system. */
    check(set: CompleteSet): void {
      const found = find(set)
      if (found === undefined) return
      throw new Fault('conflict', `version ${set.version} cannot be used: ${found.reason}`, {
        hint: 'Fetch a release, or copy the files of one.',
      })
    },
    /** Throws a Fault `input-invalid` if the folder holds another system's initrd. */
    async checkStaged(folder: string) {
      for (const { name, ...facts } of await listFolder(folder)) {
        if (parseSetFile(name)?.part !== 'initrd') continue
        const file = { ...facts, path: join(folder, name) }
        judge.kindOf(file)
        await judge.settle(WAIT_STAGED_MS)
        if (judge.kindOf(file) !== 'foreign') continue
        throw new Fault('input-invalid', renderForeign(name), {
          hint: 'Nothing was changed. Check which release site and repository are set.',
        })
      }
    },
    [Symbol.asyncDispose]: () => judge[Symbol.asyncDispose](),
  }
}

const initrdOf = ({ arch, version }: CompleteSet) => setFileName({ arch, version, part: 'initrd' })

// Looks at the boot directory: which files have come to rest, which sets they complete, and which set is active.

type BootSet = CompleteSet & LiveSet

export type ActiveSets = PerArch<BootSet | null>

/**
 * A file copied by hand counts once it has been unchanged this long, by its time if that is in the
 * past. A future time (a file server's clock, or ours set back) must have been the same for so
 * long, except at start, where files count at once.
 */
const REST_MS = 3000

export interface Scan {
  record: BootRecord
  names: readonly string[]
  complete: readonly CompleteSet[]
  active: ActiveSets
  /** Files that came whole, by rename, count at once. */
  readonly arrived: Set<string>
  /** By file: since when it has its time, in milliseconds of a steady clock; null: no look yet. */
  seen: ReadonlyMap<string, FileAge> | null
}

interface FileAge {
  readonly changedMs: number
  readonly since: number
}

interface ScanDependencies {
  readonly dir: string
  changed?(): void
  now(): Date
}

export const nothingFound = (record: BootRecord): Scan => ({
  record,
  names: [],
  complete: [],
  active: perArch(() => null),
  arrived: new Set(),
  seen: null,
})

/** Updates `found`. `bootSets` decides which sets are another system's. */
export async function look(
  { dir, now, changed }: ScanDependencies,
  bootSets: BootSets,
  found: Scan,
): Promise<void> {
  const { record, arrived } = found
  const files = await listFolder(dir)
  const at = now().getTime()
  const inForce = BOOT_ARCHS.flatMap((arch) =>
    [found.active[arch]?.version, record.active[arch]].flatMap((version) =>
      version ? TRIO.map((part) => setFileName({ arch, version, part })) : [],
    ),
  )
  const restOf = takeRests(found, files)
  const isAtRest = (name: string, changedMs: number) =>
    at - changedMs >= REST_MS || (changedMs - at >= REST_MS && restOf(name) >= REST_MS)
  const ripe = files.filter(
    ({ name, changedMs }) =>
      arrived.has(name) || inForce.includes(name) || isAtRest(name, changedMs),
  )
  found.names = files.map(({ name }) => name)
  found.complete = await bootSets.choose(ripe, record)
  const active = {
    x86_64: await readActive(dir, 'x86_64', found),
    arm64: await readActive(dir, 'arm64', found),
  }
  const isNew = JSON.stringify(active) !== JSON.stringify(found.active)
  found.active = active
  if (isNew) changed?.()
}

/** How many milliseconds each file has had its time, as far as observed; infinite at the start. */
function takeRests(
  found: Scan,
  files: readonly { readonly name: string; readonly changedMs: number }[],
): (name: string) => number {
  const before = found.seen
  const now = performance.now()
  const seen = new Map(
    files.map(({ name, changedMs }) => {
      const known = before?.get(name)
      return [name, known?.changedMs === changedMs ? known : { changedMs, since: now }]
    }),
  )
  found.seen = seen
  return (name) => (before === null ? Infinity : now - (seen.get(name)?.since ?? now))
}

async function readActive(
  dir: string,
  arch: BootArch,
  { record, complete }: Scan,
): Promise<BootSet | null> {
  const version = decideActive(arch, record, complete)
  if (version === null) return null
  const name = (part: SetFile['part']) => setFileName({ arch, version, part })
  const [vmlinuz, initrd, squashfs] = [name('vmlinuz'), name('initrd'), name('squashfs')]
  const squashfsSha256 = await readListedDigest(join(dir, name('checksums')), squashfs)
  return { arch, version, vmlinuz, initrd, squashfs, squashfsSha256 }
}

export const versionsOf = ({ active }: Scan): PerArch<string | null> =>
  perArch((arch) => active[arch]?.version ?? null)

/** Copies live systems that were built in a checkout into the boot directory. */
interface BuiltFolders {
  /** Where `pnpm build:images` leaves its files; may be missing. */
  readonly from: string
  readonly to: string
}

const LOADERS = [
  'ipxe-x86_64.efi',
  'ipxe-arm64.efi',
  ...Object.values(SHIM_FILES),
  ...Object.values(GRUB_FILES),
]

/** Copies the newest sets and boot loaders that are missing, before the directory is opened. */
export async function copyBuiltSets({ from, to }: BuiltFolders): Promise<readonly CompleteSet[]> {
  const files = await listFolder(from).catch(() => [])
  const names = files.map(({ name }) => name)
  const complete = listComplete(names)
  const sets = BOOT_ARCHS.flatMap((arch) => complete.find((set) => set.arch === arch) ?? [])
  if (sets.length === 0) return []
  await makeFolder(to)
  const wanted = new Set([
    ...sets.flatMap(listSetFiles),
    ...LOADERS.flatMap((alias) => decideAlias(alias, names) ?? []),
  ])
  for (const file of files.filter(({ name }) => wanted.has(name))) await copy(file, { from, to })
  return sets
}

export interface BuiltSet extends CompleteSet {
  readonly folder: string
}

/** The newest set of each architecture in folders that may be missing; the first folder wins. */
export async function findBuiltSets(folders: readonly string[]): Promise<readonly BuiltSet[]> {
  const found = await Promise.all(folders.map(listBuiltSets))
  return BOOT_ARCHS.flatMap((arch) => found.flat().find((set) => set.arch === arch) ?? [])
}

/** None of a folder in which everybody can write, such as /tmp. */
async function listBuiltSets(folder: string): Promise<readonly BuiltSet[]> {
  const mode = (await stat(folder).catch(() => null))?.mode ?? 0
  const names = (mode & constants.S_IWOTH) === 0 ? await readdir(folder).catch(() => []) : []
  const files = await Array.fromAsync(
    names.filter((name) => parseSetFile(name) !== null),
    async (name) => ((await hasFile(folder, name)) ? [name] : []),
  )
  return listComplete(files.flat()).map((set) => ({ ...set, folder }))
}

/** Checked against the checksums that lie beside it. */
export async function saveBuiltSet(
  save: (name: string, bytes: AsyncIterable<Uint8Array>, maxBytes: number) => Promise<unknown>,
  set: BuiltSet,
): Promise<void> {
  const names = await readdir(set.folder)
  const loaders = LOADERS.flatMap((alias) => decideAlias(alias, names) ?? [])
  // The list of checksums comes first.
  for (const name of [...listSetFiles(set).toReversed(), ...loaders]) {
    if (!names.includes(name)) continue
    const path = join(set.folder, name)
    try {
      await save(name, readWhole(path), (await stat(path)).size)
    } catch (thrown) {
      if (thrown instanceof Fault) throw thrown
      const words = `${path} could not be copied: ${renderError(thrown)}`
      throw new Fault('conflict', words, { cause: thrown })
    }
  }
}

/** Opened once somebody reads: a stream that fails before would end the program. */
async function* readWhole(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path)
}

/** Renamed when whole. The copied time tells a later start that it is the same file. */
async function copy(file: FolderFile, { from, to }: BuiltFolders): Promise<void> {
  const { name, sizeBytes, changedMs } = file
  const path = join(to, name)
  const there = await stat(path).catch(() => null)
  const isSame =
    there?.size === sizeBytes && Math.trunc(there.mtimeMs / 1000) === Math.trunc(changedMs / 1000)
  if (isSame) return
  const temporary = join(to, `${UPLOAD}${name}`)
  try {
    // Shares the blocks where the file system can.
    await copyFile(join(from, name), temporary, constants.COPYFILE_FICLONE)
    await utimes(temporary, changedMs / 1000, changedMs / 1000)
    await moveName(temporary, path)
  } catch (thrown) {
    await removeName(temporary)
    throw thrown
  }
}

/** Checks each initrd of the boot directory once, in the background, and remembers the result. */
interface InitrdFile {
  readonly path: string
  readonly sizeBytes: number
  readonly changedMs: number
}

/** The slowest machine needs less for a large initrd; beyond it, the result is `unknown`. */
const JUDGE_MS = 30_000
const MAX_KEPT = 1000

function createInitrdJudge() {
  // xz needs a tool; without it such an initrd counts.
  const decoders = createDecoders({ shell: createShell({ env: {} }) })
  const kinds = new Map<string, InitrdKind | null>()
  const stop = new AbortController()
  const enqueue = createQueue(1)

  const whenIdle = () => enqueue(async () => undefined)

  async function judge(key: string, path: string): Promise<void> {
    if (stop.signal.aborted) return
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(JUDGE_MS)])
    kinds.set(key, await readInitrdKind(path, decoders, signal))
  }

  return {
    /** Null: not known yet; it will be a little later. */
    kindOf({ path, sizeBytes, changedMs }: InitrdFile): InitrdKind | null {
      const key = `${path}\0${sizeBytes}\0${changedMs}`
      const known = kinds.get(key)
      if (known !== undefined) return known
      kinds.set(key, null)
      for (const [oldest, kind] of kinds) {
        if (kinds.size <= MAX_KEPT) break
        if (kind !== null) kinds.delete(oldest)
      }
      void enqueue(() => judge(key, path))
      return null
    },
    /** Resolves when every asked file is known, or after `ms`. */
    settle: (ms: number) => settle(whenIdle(), ms),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await whenIdle()
    },
  }
}

// Checks whether an initrd is one of ours: each of ours contains a manifest.

/** `unknown`: not read to its end, so nothing is proven. */
type InitrdKind = 'ours' | 'foreign' | 'unknown'

/** Several times an unpacked initrd with all drivers and firmware. */
const MAX_BYTES = 1024 ** 3
const PIECE_BYTES = 256 * 1024

/** By first bytes; the kernel accepts more formats than this program reads. */
const FORMATS: readonly (readonly [string, ImageFormat])[] = [
  ['1f8b', 'img.gz'],
  ['28b52ffd', 'img.zst'],
  ['fd377a585a00', 'img.xz'],
]

/** Reads up to 1 GiB unpacked: plain archives, then one compressed stream of archives. */
async function readInitrdKind(
  path: string,
  decoders: Decoders,
  signal: AbortSignal,
): Promise<InitrdKind> {
  try {
    await using source = await openFileSource(path, signal)
    const walker = createNewcWalker(ROOT_MANIFEST)
    const budget = { bytes: MAX_BYTES, signal }
    const plain = await walk(source.stream(), walker.push, budget)
    if (plain.kind === 'rest') {
      const rest = tailOf(source, plain.at)
      const format = await readFormat(rest)
      if (format === null) return 'unknown'
      await using blocks = await decoders.open(rest, format)
      const packed = await walk(listPieces(blocks), walker.push, budget)
      return decide(packed, walker.isAtEnd())
    }
    return decide(plain, walker.isAtEnd())
  } catch {
    // Damaged, changed, a missing tool, or out of time: nothing is proven.
    return 'unknown'
  }
}

function decide({ kind }: NewcStep, isAtEnd: boolean): InitrdKind {
  if (kind === 'found') return 'ours'
  return kind === 'more' && isAtEnd ? 'foreign' : 'unknown'
}

interface Budget {
  bytes: number
  readonly signal: AbortSignal
}

/** `rest` counts from the first byte. */
async function walk(
  chunks: AsyncIterable<Uint8Array>,
  push: (chunk: Uint8Array) => NewcStep,
  budget: Budget,
): Promise<NewcStep> {
  let at = 0
  for await (const chunk of chunks) {
    budget.signal.throwIfAborted()
    const step = push(chunk)
    if (step.kind === 'rest') return { kind: 'rest', at: at + step.at }
    if (step.kind !== 'more') return step
    at += chunk.length
    budget.bytes -= chunk.length
    if (budget.bytes < 0) throw new RangeError('it is too large when unpacked')
  }
  return { kind: 'more' }
}

async function* listPieces(blocks: Awaited<ReturnType<Decoders['open']>>) {
  const into = Buffer.allocUnsafe(PIECE_BYTES)
  const zeros = Buffer.alloc(PIECE_BYTES)
  for (let piece = await blocks.next(into); piece !== null; piece = await blocks.next(into)) {
    if (piece.kind === 'data') yield into.subarray(0, piece.bytes)
    else for (let rest = piece.bytes; rest > 0; rest -= PIECE_BYTES) yield zeros.subarray(0, rest)
  }
}

const tailOf = (source: Source, at: number): Source => ({
  ...source,
  path: null,
  sizeBytes: source.sizeBytes === null ? null : source.sizeBytes - at,
  readAt: null,
  stream: (from = 0) => source.stream(at + from),
  [Symbol.asyncDispose]: async () => {},
})

async function readFormat(source: Source): Promise<ImageFormat | null> {
  for await (const chunk of source.stream()) {
    const head = chunk.toString('hex', 0, 6)
    return FORMATS.find(([magic]) => head.startsWith(magic))?.[1] ?? null
  }
  return null
}
