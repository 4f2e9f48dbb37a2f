/** Keeps the live systems of all servers alike: the row says what machines boot, and who lacks a file copies it from another server. */
import { randomUUID } from 'node:crypto'
import { constants, copyFile as cloneFile, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { BootFolder } from '#fleet/boot/boot-files.ts'
import { readListedDigest } from '#fleet/boot/boot-folder.ts'
import {
  BOOT_ARCHS,
  type BootArch,
  listGiven,
  listSetFiles,
  parseSetFile,
  perArch,
  setFileName,
} from '#fleet/boot/rules/boot-set.ts'
import { describeFullDisk, requireSpace } from '#fleet/state/disk-space.ts'
import { Fault, ifMissing, renderError } from '#kit/foundation/fault.ts'
import { moveName, removeTree } from '#kit/host/folders.ts'
import { bringFile, hashStart, type IncomingFiles, openIncoming } from '#kit/host/partial-files.ts'
import type { ClusterNotes } from './cluster-notes.ts'
import type { PgSession } from './postgres.ts'
import { isSilent, type MemberRow } from './rules/lease.ts'
import {
  decideNetboot,
  isWhole,
  listChoices,
  listMissing,
  type LocalNetboot,
  type NetbootFact,
  type NetbootRow,
  parseNetboot,
  renderContent,
  renderVersions,
  type SharedBootFile,
  type SharedNetboot,
} from './rules/shared-netboot.ts'
import type { ServerStanding } from './shared-files.ts'
import { readNetbootRow, writeNetbootRow } from './tables.ts'

type NetbootShareOptions = Omit<CopiesOptions, 'files' | 'refresh'>

interface NetbootExchange {
  readonly session: PgSession
  readonly cluster: string
  readonly notes: ClusterNotes
  readonly standing: ServerStanding
  readonly ownId: string
  readonly members: readonly MemberRow[]
  readonly holder: string
}

export type NetbootShare = ReturnType<typeof createNetbootShare>

const NAME = 'netboot'

interface ReadRow {
  readonly row: NetbootRow
  /** Null: this release cannot read the row. */
  readonly wanted: SharedNetboot | null
}

/** Reads the boot directory in the background: an exchange never waits for it. */
export function createNetbootShare(options: NetbootShareOptions) {
  const ending = new AbortController()
  const files = createNetbootFiles(options.bootFiles, ending.signal)
  const folder = createReading(files)
  const copies = createCopies({ ...options, files, refresh: folder.refresh })
  let stored: ReadRow | null = null
  let [epoch, begun]: [number | null, LocalNetboot | null] = [null, null]

  function follow(standing: ServerStanding, local: LocalNetboot): void {
    if (standing.epoch === epoch) return
    epoch = standing.epoch
    begun = epoch === null ? null : local
  }

  async function bring(exchange: NetbootExchange, own: LocalNetboot): Promise<void> {
    const { session, standing } = exchange
    if (standing.epoch === null) return
    await copies.stop()
    const next = { version: randomUUID(), content: renderContent(own) }
    const before = stored?.row.version ?? null
    if (!(await writeNetbootRow(session, next, { before, epoch: standing.epoch }))) return
    stored = { row: next, wanted: own }
    await keepNote(exchange, next, own)
  }

  async function keepNote(exchange: NetbootExchange, { version }: NetbootRow, local: LocalNetboot) {
    if (notedBy(exchange) === version) return
    if (epoch !== null) begun = local
    await exchange.notes.keep(exchange.cluster, NAME, { version, digest: '' })
  }

  async function settle(exchange: NetbootExchange, local: LocalNetboot): Promise<void> {
    const { row = null } = stored ?? {}
    const leads = exchange.standing.role === 'leads'
    const decided = decideNetboot({ leads, noted: notedBy(exchange), row, local, begun })
    if (decided === 'bring') return await bring(exchange, local)
    if (stored === null) return
    if (decided === 'take') return copies.begin({ ...exchange, ...stored, local })
    if (decided === 'nothing') return
    copies.settle()
    await keepNote(exchange, stored.row, local)
  }

  return {
    /** The leader brings what was chosen here; others copy what is missing. */
    async exchange(exchange: NetbootExchange): Promise<void> {
      const row = await readNetbootRow(exchange.session)
      stored = row === null ? null : { row, wanted: parseNetboot(row.content) }
      const local = folder.last()
      void folder.refresh(stored?.wanted ?? null)
      if (local === null) return
      follow(exchange.standing, local)
      await settle(exchange, local)
    },
    fact(): NetbootFact {
      const [wanted, local] = [stored?.wanted ?? null, folder.last()]
      const has = wanted !== null && local !== null && isWhole(wanted, local)
      return { version: has ? (stored?.row.version ?? '') : '', trouble: copies.trouble() }
    },
    row: () => stored?.row ?? null,
    isStale(name: string): boolean {
      const here = folder.last()?.known.get(name)
      const named = stored?.wanted?.files.find((file) => file.name === name)
      return here !== undefined && named !== undefined && here.sha256 !== named.sha256
    },
    find: files.find,
    async end(): Promise<void> {
      ending.abort(new Fault('cancelled', 'the server stops'))
      await Promise.all([copies.stop(), folder.settled()])
    },
  }
}

const notedBy = ({ notes, cluster }: NetbootExchange): string | null =>
  notes.find(cluster, NAME)?.version ?? null

/** One reading at a time; keeps the last one. */
function createReading(files: ReturnType<typeof createNetbootFiles>) {
  let [last, wanted]: [LocalNetboot | null, SharedNetboot | null] = [null, null]
  let reading: Promise<void> | null = null
  return {
    last: () => last,
    refresh(named: SharedNetboot | null = wanted): Promise<void> {
      wanted = named
      reading ??= files
        .read(wanted?.files.map(({ name }) => name) ?? [])
        .then((read) => {
          if (read !== null) last = read
        })
        // Best effort: the folder is read again in a second.
        .catch(() => undefined)
        .finally(() => {
          reading = null
        })
      return reading
    },
    settled: async () => reading,
  }
}

// Has what is missing of the live systems copied: one copy at a time, beside everything else, and again after a failure.

/** Milliseconds after a failed copy. */
const RETRY_MS = 15_000

interface CopiesOptions {
  readonly bootFiles: Pick<BootFolder, 'dir' | 'sets' | 'list' | 'stage' | 'install'>
  readonly openFile: OpenSharedFile
  readonly files: ReturnType<typeof createNetbootFiles>
  keep(): number
  refresh(): Promise<void>
  readonly log: { info(message: string): void; warn(message: string): void }
}

interface CopyRun extends Omit<Parameters<typeof copyNetboot>[1], 'keep'> {
  readonly version: string
}

interface WantedCopy {
  readonly row: NetbootRow
  readonly wanted: SharedNetboot | null
  readonly local: LocalNetboot
  readonly ownId: string
  readonly members: readonly MemberRow[]
  readonly holder: string
}

function createCopies({ bootFiles, openFile, keep, log, files, refresh }: CopiesOptions) {
  let running: {
    readonly version: string
    readonly ending: AbortController
    readonly ended: Promise<void>
  } | null = null
  let [trouble, failed, retryAt] = ['', '', 0]

  function fail(version: string, why: string): void {
    if (why !== trouble) log.warn(`the live system was not copied from another server: ${why}`)
    ;[trouble, failed, retryAt] = [why, version, performance.now() + RETRY_MS]
  }

  async function run({
    version,
    wanted,
    missing,
    choices,
    sources,
    signal,
  }: CopyRun): Promise<void> {
    const order = { wanted, missing, choices, sources, keep: keep(), signal }
    try {
      await copyNetboot({ bootFiles, openFile }, order)
      await files.trust(missing)
      const names = sources.map(({ name }) => name).join(' or ')
      const from = missing.length === 0 ? '' : `, ${missing.length} files from ${names}`
      log.info(`machines boot ${renderVersions(wanted)} here as well${from}`)
      trouble = ''
    } catch (thrown) {
      if (!signal.aborted) fail(version, renderError(thrown))
    }
    // The next exchange decides by this; a reading under way may have begun before the end.
    await refresh()
    await refresh()
  }

  async function stop(): Promise<void> {
    running?.ending.abort(new Fault('cancelled', 'another live system is wanted'))
    await running?.ended
  }

  function isTime(version: string): boolean {
    if (running !== null && running.version !== version) void stop()
    return running === null && (failed !== version || performance.now() >= retryAt)
  }

  return {
    begin({ row, wanted, local, ownId, members, holder }: WantedCopy): void {
      const { version } = row
      if (wanted === null || !isTime(version)) return
      const [missing, choices] = [listMissing(wanted, local), listChoices(wanted, local)]
      // New files have to rest before they count.
      if (missing.length === 0 && Object.keys(choices).length === 0) return
      const sources = listSources(row, { ownId, members, holder })
      if (sources.length === 0 && missing.length > 0) {
        const versions = renderVersions(wanted)
        return fail(
          version,
          `no connected server has all files of ${versions}; fetch that release or use another one under Network boot`,
        )
      }
      const ending = new AbortController()
      const { signal } = ending
      const ended = run({ version, wanted, missing, choices, sources, signal }).finally(() => {
        running = null
      })
      running = { version, ending, ended }
    },
    settle() {
      ;[trouble, failed] = ['', '']
    },
    trouble: () => trouble,
    stop,
  }
}

function listSources(
  { version }: NetbootRow,
  { ownId, members, holder }: Pick<WantedCopy, 'ownId' | 'members' | 'holder'>,
): readonly NetbootSource[] {
  const having = members.filter(
    (each) =>
      each.id !== ownId &&
      each.url !== '' &&
      each.facts.netboot.version === version &&
      !isSilent(each),
  )
  return having.toSorted((one, two) => Number(two.name === holder) - Number(one.name === holder))
}

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

interface NetbootSource {
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
