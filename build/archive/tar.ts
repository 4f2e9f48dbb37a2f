/** Writes a tar archive (POSIX ustar) whose bytes depend on its content only. */
import { gzipSync } from 'node:zlib'

export interface TarEntry {
  /** Below the archive's folder, with slashes. */
  readonly path: string
  readonly isProgram: boolean
  /** Of a file its bytes; of a symbolic link the path that it names. */
  readonly content: Buffer | { readonly link: string }
}

interface TarOptions {
  /** All entries lie in this folder. */
  readonly folder: string
  /** Seconds since 1970: the time of all entries. */
  readonly epoch: number
}

const BLOCK = 512
/** Archives end with two empty blocks. */
const END = 2 * BLOCK
/** How many bytes the two fields of a path hold. */
const MAX = { name: 100, prefix: 155 } as const

/** Compressed; Node writes neither a name nor a time into the header. */
export const renderTarball = (entries: readonly TarEntry[], options: TarOptions): Buffer =>
  gzipSync(renderTar(entries, options), { level: 9 })

/** @throws for a path that is too long for the format. */
function renderTar(entries: readonly TarEntry[], { folder, epoch }: TarOptions): Buffer {
  const sorted = entries.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const parts = sorted.flatMap(({ path, isProgram, content }) => {
    const whole = `${folder}/${path}`
    if (!Buffer.isBuffer(content)) return [renderHeader({ path: whole, epoch, link: content.link })]
    const header = { path: whole, epoch, bytes: content.length, mode: isProgram ? 0o755 : 0o644 }
    return [renderHeader(header), content, Buffer.alloc(-content.length & (BLOCK - 1))]
  })
  return Buffer.concat([...parts, Buffer.alloc(END)])
}

interface Header {
  readonly path: string
  readonly epoch: number
  readonly bytes?: number
  readonly mode?: number
  /** Absent: a file. */
  readonly link?: string
}

function renderHeader({ path, epoch, bytes = 0, mode = 0o777, link }: Header): Buffer {
  const header = Buffer.alloc(BLOCK)
  const { name, prefix } = splitPath(path)
  if (Buffer.byteLength(link ?? '') > MAX.name)
    throw new Error(`${path} is a link that is too long`)
  const fields: readonly (readonly [number, string])[] = [
    [0, name],
    [100, octal(mode, 7)],
    [108, octal(0, 7)],
    [116, octal(0, 7)],
    [124, octal(bytes, 11)],
    [136, octal(epoch, 11)],
    [148, ' '.repeat(8)],
    [156, link === undefined ? '0' : '2'],
    [157, link ?? ''],
    [257, 'ustar\u000000'],
    [265, 'root'],
    [297, 'root'],
    [345, prefix],
  ]
  for (const [at, text] of fields) header.write(text, at, 'utf8')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${octal(sum, 6)}\u0000 `, 148, 'latin1')
  return header
}

const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')

/** At a slash, so that both parts fit. */
function splitPath(path: string): { readonly name: string; readonly prefix: string } {
  if (Buffer.byteLength(path) <= MAX.name) return { name: path, prefix: '' }
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    const fits = Buffer.byteLength(name) <= MAX.name && Buffer.byteLength(prefix) <= MAX.prefix
    if (fits) return { name, prefix }
  }
  throw new Error(`${path} is too long for an archive`)
}
