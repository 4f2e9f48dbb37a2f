/** What the files of boot entries are now: their checksums, and who signed what is started; read again where a file has changed. */
import { createHash } from 'node:crypto'
import { type EfiProgram, parseEfiProgram } from '#engine/bootable/rules/efi-program.ts'
import { parseVendorKeys, type VendorKeys } from '#engine/bootable/rules/key-list.ts'
import type { BootArch } from '#fleet/boot/rules/boot-set.ts'
import { createQueue } from '#kit/host/queue.ts'
import { openServed, type ServedFile } from '#kit/host/served-files.ts'
import { SHIM_FILES } from '#appliance/assets.ts'
import type { BootFiles } from '#fleet/boot/boot-files.ts'
import { listParts, type BootEntry, type EntryPart } from './rules/boot-entry.ts'

interface FileFacts {
  readonly stamp: string
  readonly sha256: string
  /** Null: it is none, or too large to be looked into. */
  readonly program: EfiProgram | null
  /** Of a shim. */
  readonly vendorKeys: VendorKeys | null
}

export type EntryFiles = ReturnType<typeof createEntryFiles>

interface EntryFilesDependencies {
  readonly bootFiles: Pick<BootFiles, 'dir' | 'alias'>
  entries(): readonly Pick<BootEntry, EntryPart>[]
  changed(): void
}

const LOOK_MS = 5000
const START_MS = 1000
const PIECE_BYTES = 1024 * 1024
/** As large as a kernel with its initrd in one program. */
const MAX_PROGRAM_BYTES = 128 * 1024 * 1024

/** Looks every few seconds until disposed of. */
export function createEntryFiles({ bootFiles, entries, changed }: EntryFilesDependencies) {
  const { dir } = bootFiles
  const known = new Map<string, FileFacts>()
  const shims = new Map<BootArch, string>()
  // A large file is read once, whoever asks.
  const inTurn = createQueue(1)
  const ending = new AbortController()

  /** Closes nothing. Null: the file changed while it was read, so nothing is known of it. */
  async function read(name: string, file: ServedFile): Promise<FileFacts | null> {
    const stamp = await stampOf(file)
    const found = known.get(name)
    if (found?.stamp === stamp) return found
    known.delete(name)
    const facts = { stamp, ...(await readFacts(file, ending.signal)) }
    if ((await stampOf(file)) !== stamp) return null
    known.set(name, facts)
    return facts
  }

  /** One that cannot be read counts as absent. */
  async function lookAt(name: string): Promise<void> {
    const before = known.get(name)?.stamp
    const file = await openServed(dir, name).catch(() => null)
    try {
      if (file === null) known.delete(name)
      else await read(name, file)
    } catch {
      known.delete(name)
    } finally {
      await file?.close()
    }
    if (known.get(name)?.stamp !== before) changed()
  }

  async function lookNow(more: readonly Pick<BootEntry, EntryPart>[]): Promise<void> {
    const wanted = new Set([...entries(), ...more].flatMap(listParts).map(({ name }) => name))
    if (wanted.size > 0) {
      for (const arch of ['x86_64', 'arm64'] as const) {
        const name = (await bootFiles.alias?.(SHIM_FILES[arch])) ?? SHIM_FILES[arch]
        shims.set(arch, name)
        wanted.add(name)
      }
    }
    for (const name of wanted) await lookAt(name)
    for (const name of known.keys()) if (!wanted.has(name)) known.delete(name)
  }

  const look = (more: readonly Pick<BootEntry, EntryPart>[] = []) => inTurn(() => lookNow(more))
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS).unref()

  return {
    /** From memory. A clause; null: all files are as the entry says. */
    findTrouble: (entry: Pick<BootEntry, EntryPart>): string | null =>
      findTrouble(entry, (name) => known.get(name)?.sha256 ?? null),
    /** From memory. */
    programOf: (name: string): EfiProgram | null => known.get(name)?.program ?? null,
    vendorKeys: (arch: BootArch): VendorKeys | null =>
      known.get(shims.get(arch) ?? '')?.vendorKeys ?? null,
    look,
    /** Small files are known then; large ones never hold the start up. */
    lookAtStart: () => Promise.race([look(), waitAtStart()]),
    /**
     * The file is opened here, and held what was asked for when it was hashed; null: it is not
     * there, or another. Where it was changed since then, reading it fails.
     */
    async open(name: string, sha256: string): Promise<ServedFile | null> {
      const file = await openServed(dir, name).catch(() => null)
      if (file === null) return null
      const found = known.get(name)
      const facts =
        found !== undefined && found.stamp === (await stampOf(file))
          ? found
          : await inTurn(() => read(name, file)).catch(() => null)
      if (facts?.sha256 === sha256) return holdUnchanged(file, facts.stamp)
      await file.close()
      return null
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      ending.abort()
      await inTurn(async () => undefined)
    },
  }
}

const waitAtStart = () => new Promise<void>((resolve) => void setTimeout(resolve, START_MS).unref())

/** Of the open file, not of its name. */
const stampOf = async (file: ServedFile): Promise<string> => (await file.stamp?.()) ?? ''

/** Each piece is looked at again before it is sent. It is closed once, however often that is asked. */
function holdUnchanged(file: ServedFile, stamp: string): ServedFile {
  let closing: Promise<void> | null = null
  return {
    ...file,
    async read(...on) {
      const bytes = await file.read(...on)
      if ((await stampOf(file)) !== stamp) throw new Error('the file was changed while it was sent')
      return bytes
    },
    close: () => (closing ??= file.close()),
  }
}

function findTrouble(
  entry: Pick<BootEntry, EntryPart>,
  digestOf: (name: string) => string | null,
): string | null {
  for (const { name, sha256 } of listParts(entry)) {
    const digest = digestOf(name)
    if (digest === null) return `the file ${name} is not in the boot folder, or cannot be read`
    if (digest !== sha256) return `the file ${name} has the SHA-256 ${digest}`
  }
  return null
}

async function readFacts(file: ServedFile, signal: AbortSignal) {
  const hash = createHash('sha256')
  const pieces: Buffer[] = []
  let at = 0
  for (;;) {
    signal.throwIfAborted()
    const piece = Buffer.allocUnsafe(PIECE_BYTES)
    const bytes = await file.read(piece, at, signal)
    if (bytes === 0) break
    hash.update(piece.subarray(0, bytes))
    at += bytes
    // What begins otherwise is no program.
    if (pieces.length > 0 || (at === bytes && piece.toString('latin1', 0, 2) === 'MZ'))
      pieces.push(piece.subarray(0, bytes))
    if (at > MAX_PROGRAM_BYTES) pieces.length = 0
  }
  const whole = Buffer.concat(pieces)
  return {
    sha256: hash.digest('hex'),
    program: whole.length === 0 ? null : parseEfiProgram(whole),
    vendorKeys: whole.length === 0 ? null : parseVendorKeys(whole),
  }
}
