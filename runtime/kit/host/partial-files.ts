/** The one store of files that come in parts: what has come stays, across broken connections, kills and power cuts. */
import { type Hash, createHash } from 'node:crypto'
import { type FileHandle, open, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault, ifMissing } from '#kit/foundation/fault.ts'
import { makeFolder, removeName, removeTree, syncFolder } from './folders.ts'
import type { RecordsOf } from './records.ts'

/** What is stored of a partial file beside its bytes; each kind of file adds its own fields. */
export interface PartialRecord {
  /** This many bytes are certainly on the disk. */
  readonly durableBytes: number
  /** The run of the kernel that has the bytes behind them in its memory; absent or null: none. */
  readonly bootId?: string | null
}

export interface PartialFile<Kept extends PartialRecord> {
  /** 32 to 64 hexadecimal digits. */
  readonly name: string
  record: Kept
  /** This many bytes are here; the next ones belong behind them. */
  offset: number
  /** SHA-256 of the bytes before the offset; null: it is computed when it is needed. */
  hash: Hash | null
  /** It is aborted when the file is removed; the reason is what writers get. */
  readonly removal: AbortController
}

export type PartialFiles<Kept extends PartialRecord> = Awaited<
  ReturnType<typeof openPartialFiles<Kept>>
>

interface PartialFilesOptions<Kept extends PartialRecord> {
  /** It is made where it is missing; everything in it is ours. */
  readonly folder: string
  /** The modes of the folder, where it is made, and of the files. */
  readonly modes: { readonly folder: number; readonly file: number }
  /** How the names of the files end, behind their own. */
  readonly suffix?: string
  /** Null: none is kept. What has come is then worth nothing without a digest of the whole. */
  readonly records: RecordsOf<Kept> | null
}

interface Receiving {
  readonly signal: AbortSignal
  /** Hears that bytes which end at `end` are to be written: makes room, or throws. */
  admit(end: number): Promise<void> | void
  /** Hears how many more bytes are here. */
  onBytes?(count: number): void
  /** After so many bytes they are made durable, so that a power cut costs no more than them. */
  readonly checkpointBytes?: number
}

/** Begins one, or takes up one of which nothing but its bytes is known; `offset` bytes are here. */
export function createPartialFile<Kept extends PartialRecord>(
  name: string,
  record: Kept,
  offset = 0,
): PartialFile<Kept> {
  return { name, record, offset, hash: null, removal: new AbortController() }
}

/** Opens the store of one kind of partial files, with what the process before has left there. */
export async function openPartialFiles<Kept extends PartialRecord>({
  folder,
  modes,
  suffix = '',
  records,
}: PartialFilesOptions<Kept>) {
  await makeFolder(folder, modes.folder)
  const bootId = await readBootId()
  const pathOf = (name: string) => join(folder, `${checked(name)}${suffix}`)

  /** How much of it can be gone on with: more than is durable only where the kernel still has it. */
  async function restore(name: string, record: Kept): Promise<PartialFile<Kept>> {
    const { size } = (await stat(pathOf(name)).catch(ifMissing(null))) ?? { size: 0 }
    const isInMemory = (record.bootId ?? null) !== null && record.bootId === bootId
    return createPartialFile(name, record, isInMemory ? size : Math.min(size, record.durableBytes))
  }

  const store = {
    folder,
    /** The kernel's name of this run; null: it does not say. */
    bootId,
    pathOf,
    async save(file: PartialFile<Kept>, news: Partial<Kept>): Promise<void> {
      const record = { ...file.record, ...news }
      await records?.write(file.name, record)
      file.record = record
      if (file.removal.signal.aborted) await records?.remove(file.name)
    },
    /** Once its record is gone, its bytes are nobody's: the next sweep would remove them. */
    async remove(name: string): Promise<void> {
      await records?.remove(name)
      await removeName(pathOf(name))
    },
    /** What the process before has left of one; null: nothing that could be gone on with. */
    async find(name: string): Promise<PartialFile<Kept> | null> {
      const record = (await records?.read(name)) ?? null
      return record === null ? null : await restore(name, record)
    },
    async list(): Promise<readonly PartialFile<Kept>[]> {
      const found = (await records?.list()) ?? []
      return await Promise.all(found.map(([name, record]) => restore(name, record)))
    },
    /** Removes what is not wanted, whatever of it is there, and what is no partial file. */
    async sweep(isWanted: (name: string) => boolean): Promise<void> {
      for (const [name] of (await records?.list()) ?? []) {
        if (!isWanted(name)) await records?.remove(name)
      }
      for (const entry of await readdir(folder)) {
        const name = entry.slice(0, entry.length - suffix.length)
        const isOurs = entry.endsWith(suffix) && NAME.test(name)
        if (!isOurs || !isWanted(name)) await removeTree(join(folder, entry))
      }
    },
    async open(file: PartialFile<Kept>): Promise<PartialWriter<Kept>> {
      const handle = await open(pathOf(file.name), 'a+', modes.file)
      return createWriter(file, handle, folder, (news) => store.save(file, news))
    },
  }
  return store
}

export type PartialWriter<Kept extends PartialRecord> = ReturnType<typeof createWriter<Kept>>

function createWriter<Kept extends PartialRecord>(
  file: PartialFile<Kept>,
  handle: FileHandle,
  folder: string,
  save: (news: Partial<Kept>) => Promise<void>,
) {
  async function append(chunk: Uint8Array): Promise<void> {
    const written = handle.writeFile(chunk)
    file.hash?.update(chunk) // Meanwhile.
    try {
      await written
    } catch (thrown) {
      file.hash = null
      throw thrown
    }
    file.offset += chunk.length
  }

  const writer = {
    handle,
    /** The record never says more than what a power cut leaves, and what cannot be kept has not come. */
    async keep(news: Partial<Kept>): Promise<void> {
      const durableBytes = file.offset
      try {
        await handle.datasync()
        // Its name as well, the first time.
        if (file.record.durableBytes === 0) await syncFolder(folder)
        await save({ ...news, durableBytes })
      } catch (thrown) {
        file.offset = file.record.durableBytes
        file.hash = null
        throw thrown
      }
    },
    /**
     * Goes on behind so many bytes: what a failed write has left behind them is no part of the file. A
     * Fault `conflict` where there are fewer.
     */
    async start(from: number): Promise<void> {
      const { size } = await handle.stat()
      if (file.offset !== from || size < from) file.hash = null
      file.offset = Math.min(size, from)
      if (size < from) {
        // The record says what is there from now on.
        await writer.keep({})
        throw new Fault('conflict', `bytes were lost: it continues at byte ${size}`)
      }
      await handle.truncate(from)
    },
    /** The SHA-256 of what has come; what is written from now on goes into it. */
    hash: async (signal: AbortSignal): Promise<Hash> =>
      (file.hash ??= await hashStart(handle, file.offset, signal)),
    /** Writes what comes behind what is there; a failure leaves what came before it. */
    async receive(bytes: AsyncIterable<Uint8Array>, hooks: Receiving): Promise<void> {
      const { signal, checkpointBytes = Infinity } = hooks
      let durable = file.offset
      for await (const chunk of bytes) {
        signal.throwIfAborted()
        file.removal.signal.throwIfAborted()
        const room = hooks.admit(file.offset + chunk.length)
        if (room !== undefined) await room
        await append(chunk)
        hooks.onBytes?.(chunk.length)
        if (file.offset - durable < checkpointBytes) continue
        durable = file.offset
        await writer.keep({})
      }
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
  return writer
}

/** Such names alone become names of files. */
const NAME = /^[0-9a-f]{32,64}$/

function checked(name: string): string {
  if (NAME.test(name)) return name
  throw new Fault('input-invalid', 'not the name of a partial file')
}

async function readBootId(): Promise<string | null> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return /^[0-9a-f-]{36}\s*$/.test(text) ? text.trim() : null
}

/** Computes the digest of the beginning of an open file. */
const CHUNK_BYTES = 1024 * 1024

/**
 * Computes SHA-256 of the first `bytes` bytes and returns its state, to be continued or ended;
 * `onBytes` hears how many are done. Rejects with a Fault `source-broken` where the file has fewer,
 * or with the signal's reason.
 */
export async function hashStart(
  handle: FileHandle,
  bytes: number,
  signal: AbortSignal,
  onBytes?: (done: number) => void,
): Promise<Hash> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes))
  for (let at = 0; at < bytes;) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, bytes - at), at)
    if (bytesRead === 0)
      throw new Fault('source-broken', 'the file became shorter while it was read')
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
    onBytes?.(at)
  }
  return hash
}

// Files that are known by their digest before they come: each goes on where the last try of the same one ended.

interface DigestFile {
  readonly sha256: string
  readonly sizeBytes: number
}

/** What has come of them; the name of each is its digest. */
export type IncomingFiles = PartialFiles<PartialRecord>

interface FileIntake {
  readonly signal: AbortSignal
  read(from: number): AsyncIterable<Uint8Array>
  /** Makes what is thrown where more bytes come than the file has. */
  refuseLonger(): Error
  /** Hears how many bytes are here. */
  onBytes?(count: number): void
}

/** Opens their folder; what was begun there of other files is removed. */
export async function openIncoming(
  folder: string,
  files: readonly DigestFile[],
): Promise<IncomingFiles> {
  const modes = { folder: 0o777, file: 0o644 }
  const incoming = await openPartialFiles({ folder, modes, records: null })
  const wanted = new Set(files.map(({ sha256 }) => sha256))
  await incoming.sweep((name) => wanted.has(name))
  return incoming
}

/** Brings a file to its end. Resolves to the digest that came in its place; null: it is the file. */
export async function bringFile(
  incoming: IncomingFiles,
  file: DigestFile,
  intake: FileIntake,
): Promise<string | null> {
  const { found, from } = await fill(incoming, file, intake)
  if (found === file.sha256) return null
  await incoming.remove(file.sha256)
  // What was there may be what is wrong.
  return from > 0 ? await bringFile(incoming, file, intake) : found
}

async function fill(
  incoming: IncomingFiles,
  { sha256, sizeBytes }: DigestFile,
  { signal, read, refuseLonger, onBytes }: FileIntake,
) {
  const file = createPartialFile(sha256, { durableBytes: 0 })
  await using writer = await incoming.open(file)
  const { size } = await writer.handle.stat()
  // Something longer than the file is no part of it.
  const from = size > sizeBytes ? 0 : size
  await writer.start(from)
  const hash = await writer.hash(signal)
  onBytes?.(from)
  if (from < sizeBytes) {
    await writer.receive(read(from), {
      signal,
      admit(end) {
        if (end > sizeBytes) throw refuseLonger()
      },
      onBytes: () => onBytes?.(file.offset),
    })
    await writer.keep({})
  }
  return { found: hash.digest('hex'), from }
}

/** How their names begin: hidden, so that nobody can fetch them. */
export const UPLOAD = '.upload-'

/** Removes uploads that were cut off; it is called at start, when none can be under way. */
export async function clearUploads(dir: string): Promise<void> {
  const names = await readdir(dir)
  for (const name of names.filter((one) => one.startsWith(UPLOAD))) {
    await removeName(join(dir, name))
  }
}
