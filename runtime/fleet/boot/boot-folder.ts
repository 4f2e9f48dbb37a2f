/** Single files of the boot directory: lists them, reads digests from checksum lists, receives uploads. */
import { createHash, randomBytes } from 'node:crypto'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeList, parseSha256For } from '#kit/foundation/checksum.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { describeFullDisk } from '#fleet/state/disk-space.ts'
import { moveName, removeName } from '#kit/host/folders.ts'
import { UPLOAD } from '#kit/host/temporary-uploads.ts'

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
      throw new Fault('too-large', `an upload may have ${maxBytes} bytes at most`, {
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
  new Fault('digest-mismatch', `${name} is not the file that the list of checksums names`, {
    hint: 'Nothing was replaced. For another build of that version, upload its .sha256 file first.',
  })
