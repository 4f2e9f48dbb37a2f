/** Files that are known by their digest before they come: each goes on where the last try of the same one ended. */
import {
  createPartialFile,
  openPartialFiles,
  type PartialFiles,
  type PartialRecord,
} from './partial-files.ts'

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
