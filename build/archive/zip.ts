/** Writes a zip archive whose entries are stored as they are, and whose bytes depend on its content only. */
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'

interface ZipOptions {
  /** The folder with the files. */
  readonly root: string
  /** The files below it, with slashes; they come in this order. */
  readonly paths: readonly string[]
  readonly out: string
  /** Seconds since 1970: the time of all entries, UTC. */
  readonly epoch: number
}

/** Sizes and offsets have 32 bits in the format that every program reads. */
const MAX_ZIP_BYTES = 0xffff_ffff
const SIGNATURES = { local: 0x0403_4b50, central: 0x0201_4b50, end: 0x0605_4b50 } as const
/** 2.0: folders are made from names. */
const VERSION = 20
const UTF8_NAMES = 0x0800
/** A regular file that everybody may read, as Unix writes it. */
const MODE = (0o100_644 << 16) >>> 0
const MADE_BY_UNIX = 3 << 8
const CHUNK_BYTES = 2 ** 20

interface Entry {
  readonly name: Buffer
  readonly bytes: number
  readonly crc: number
  readonly offset: number
}

/**
 * Writes the archive.
 *
 * @throws {Error} The archive would have 4 GiB or more, or a file cannot be read.
 */
export async function writeZip({ root, paths, out, epoch }: ZipOptions): Promise<void> {
  await using zip = await open(out, 'w')
  const time = renderTime(epoch)
  const entries: Entry[] = []
  let at = 0
  const add = async (bytes: Uint8Array) => {
    if (at + bytes.length > MAX_ZIP_BYTES) throw new Error(`${out} would have 4 GiB or more`)
    await zip.write(bytes, 0, bytes.length, at)
    at += bytes.length
  }
  for (const path of paths) {
    await using file = await open(join(root, path))
    const entry = { name: Buffer.from(path), ...(await measure(file)), offset: at }
    await add(renderHeader('local', entry, time))
    for await (const chunk of readChunks(file)) await add(chunk)
    entries.push(entry)
  }
  const start = at
  for (const entry of entries) await add(renderHeader('central', entry, time))
  await add(renderEnd(entries.length, start, at - start))
}

async function measure(file: FileHandle) {
  let [bytes, crc] = [0, 0]
  for await (const chunk of readChunks(file)) {
    bytes += chunk.length
    crc = crc32(chunk, crc)
  }
  return { bytes, crc }
}

async function* readChunks(file: FileHandle): AsyncGenerator<Buffer> {
  for (let at = 0; ;) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, at)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** Both kinds of headers have these fields in this order; the central one has more around them. */
function renderHeader(kind: 'local' | 'central', entry: Entry, time: Buffer): Buffer {
  const { name, bytes, crc, offset } = entry
  const head = Buffer.alloc(kind === 'local' ? 4 : 6)
  head.writeUInt32LE(SIGNATURES[kind])
  if (kind === 'central') head.writeUInt16LE(MADE_BY_UNIX | VERSION, 4)
  // Version, flags, method (0: stored); time; checksum, both sizes, lengths of the name and of nothing else.
  const [before, after] = [Buffer.alloc(6), Buffer.alloc(16)]
  before.writeUInt16LE(VERSION)
  before.writeUInt16LE(UTF8_NAMES, 2)
  after.writeUInt32LE(crc)
  after.writeUInt32LE(bytes, 4)
  after.writeUInt32LE(bytes, 8)
  after.writeUInt16LE(name.length, 12)
  const common = [head, before, time, after]
  if (kind === 'local') return Buffer.concat([...common, name])
  const rest = Buffer.alloc(14)
  rest.writeUInt32LE(MODE, 6)
  rest.writeUInt32LE(offset, 10)
  return Buffer.concat([...common, rest, name])
}

function renderEnd(entries: number, start: number, bytes: number): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(SIGNATURES.end)
  end.writeUInt16LE(entries, 8)
  end.writeUInt16LE(entries, 10)
  end.writeUInt32LE(bytes, 12)
  end.writeUInt32LE(start, 16)
  return end
}

/** As DOS writes it: in steps of two seconds since 1980. */
function renderTime(epoch: number): Buffer {
  const date = new Date(epoch * 1000)
  const time = Buffer.alloc(4)
  const seconds = Math.floor(date.getUTCSeconds() / 2)
  time.writeUInt16LE((date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | seconds)
  const year = Math.max(0, date.getUTCFullYear() - 1980)
  time.writeUInt16LE((year << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate(), 2)
  return time
}
