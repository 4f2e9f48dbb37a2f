/** Single files of the boot directory: lists them, reads digests from checksum lists, receives uploads. */
import { createHash, randomBytes } from 'node:crypto'
import { open, readdir, stat, lstat, readFile } from 'node:fs/promises'
import { join, basename } from 'node:path'
import { decodeList, parseSha256For } from '#kit/foundation/checksum.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { describeFullDisk } from '#fleet/state/disk-space.ts'
import { moveName, removeName, removeTree, replaceFile } from '#kit/host/folders.ts'
import { UPLOAD, clearUploads } from '#kit/host/partial-files.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { parseBootRecord, type BootRecord } from './rules/boot-set.ts'

export interface FolderFile {
  readonly name: string
  readonly sizeBytes: number
  /** ISO time of the last change; `changedMs`: the same in milliseconds. */
  readonly modifiedAt: string
  readonly changedMs: number
}

const MAX_FILES = 10_000
const MAX_LIST_BYTES = 64 * 1024

/** By name; links to regular files count. */
export async function listFolder(dir: string): Promise<readonly FolderFile[]> {
  const names = (await readdir(dir)).filter((name) => !name.startsWith('.')).toSorted()
  const found = await Promise.all(names.slice(0, MAX_FILES).map((name) => describe(dir, name)))
  return found.filter((file) => file !== null)
}

async function describe(dir: string, name: string): Promise<FolderFile | null> {
  // Null also if it disappeared after the listing.
  const facts = await stat(join(dir, name)).catch(() => null)
  if (facts === null || !facts.isFile()) return null
  const { size, mtimeMs } = facts
  const modifiedAt = new Date(mtimeMs).toISOString()
  return { name, sizeBytes: size, modifiedAt, changedMs: mtimeMs }
}

export const hasFile = async (dir: string, name: string): Promise<boolean> =>
  (await stat(join(dir, name)).catch(() => null))?.isFile() === true

/** Null: no usable entry. */
export async function readListedDigest(list: string, name: string): Promise<string | null> {
  try {
    await using handle = await open(list, 'r')
    if ((await handle.stat()).size > MAX_LIST_BYTES) return null
    const parsed = parseSha256For(decodeList(await handle.readFile()), name)
    return parsed.ok ? parsed.value : null
  } catch {
    return null // Absent or unreadable: the digest is not known.
  }
}

interface BootUpload {
  readonly dir: string
  readonly name: string
  readonly bytes: AsyncIterable<Uint8Array>
  readonly maxBytes: number
  /** Null: no checksum list has it. */
  readonly sha256: string | null
}

/** The file is replaced whole, or a Fault says why not; returns its length in bytes. */
export async function receiveUpload({ dir, name, bytes, maxBytes, sha256 }: BootUpload) {
  const temporary = join(dir, `${UPLOAD}${randomBytes(6).toString('hex')}`)
  try {
    const { length, digest } = await writeStream(temporary, bytes, maxBytes)
    if (sha256 !== null && sha256 !== digest) throw mismatch(name)
    await moveName(temporary, join(dir, name)).catch((cause: unknown) => {
      throw new Fault('conflict', `${name} cannot be replaced: is it a folder?`, { cause })
    })
    return length
  } catch (thrown) {
    await removeName(temporary)
    throw (await describeFullDisk(thrown, dir)) ?? thrown
  }
}

async function writeStream(path: string, bytes: AsyncIterable<Uint8Array>, maxBytes: number) {
  await using handle = await open(path, 'wx', 0o644)
  let length = 0
  const hash = createHash('sha256')
  for await (const chunk of bytes) {
    length += chunk.byteLength
    if (length > maxBytes) {
      throw new Fault('too-large', `at most ${maxBytes} bytes can be uploaded`, {
        hint: 'The setting tuning.max_upload_bytes raises the limit.',
      })
    }
    const written = handle.writeFile(chunk)
    hash.update(chunk) // Meanwhile.
    await written
  }
  await handle.sync()
  return { length, digest: hash.digest('hex') }
}

const mismatch = (name: string) =>
  new Fault('digest-mismatch', `${name} does not match its checksum`, {
    hint: 'Nothing was replaced. For another build of that version, upload its .sha256 file first.',
  })

// Moves files into the boot directory all together, even across a crash.

/** Hidden: nobody can fetch or upload it below `/boot/`. */
const RECORD = '.active.json'
/** Like the files beside it: another program may serve them. */
const FOR_ALL = 0o644
export const STAGED = '.staged-'
const COMMITTED = '.install-'

export async function readBootRecord(dir: string): Promise<BootRecord> {
  const text = await readFile(join(dir, RECORD), 'utf8').catch(() => '')
  return parseBootRecord(parseJson(text))
}

export const writeBootRecord = (dir: string, record: BootRecord): Promise<void> =>
  replaceFile(join(dir, RECORD), renderRecord(record), FOR_ALL)

/**
 * One rename commits; from then on the installation is finished here or at the next start. Before,
 * a Fault `conflict` if something that is no file has a needed name. `record` null: the folder has
 * none.
 */
export async function installStaged(
  dir: string,
  staged: string,
  record: BootRecord | null,
): Promise<void> {
  const names = await readdir(staged)
  for (const name of names) await checkFree(dir, name)
  for (const name of names) await syncFile(join(staged, name))
  if (record !== null) await replaceFile(join(staged, RECORD), renderRecord(record), FOR_ALL)
  const committed = join(dir, basename(staged).replace(STAGED, COMMITTED))
  await moveName(staged, committed)
  await finish(dir, committed)
}

/** At start: finishes what was committed, removes what was not. */
export async function recoverInstalls(dir: string): Promise<void> {
  await clearUploads(dir)
  for (const name of await readdir(dir)) {
    if (name.startsWith(COMMITTED)) await finish(dir, join(dir, name))
    else if (name.startsWith(STAGED)) {
      await removeTree(join(dir, name))
    }
  }
}

/** The record comes last: until then scripts name the former files. */
async function finish(dir: string, committed: string): Promise<void> {
  const names = await readdir(committed)
  for (const name of names.filter((one) => one !== RECORD)) {
    await moveName(join(committed, name), join(dir, name))
  }
  if (names.includes(RECORD)) await moveName(join(committed, RECORD), join(dir, RECORD))
  await removeTree(committed)
}

async function checkFree(dir: string, name: string): Promise<void> {
  const there = await lstat(join(dir, name)).catch(() => null)
  if (there === null || there.isFile() || there.isSymbolicLink()) return
  throw new Fault('conflict', `${join(dir, name)} is in the way; it is not a file`, {
    hint: 'Move it, then try again.',
  })
}

async function syncFile(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

const renderRecord = (record: BootRecord) => `${JSON.stringify(record, null, 2)}\n`
