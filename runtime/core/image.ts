/** What an image is: the formats we write, told by name and by content ("Recognised image formats"). */
import { accept, refuse, type Result } from './result.ts'

/** Most specific first: the order in which names are matched. */
export const IMAGE_FORMATS = ['img.zst', 'img.xz', 'img.gz', 'img.bz2', 'qcow2', 'img'] as const
export type ImageFormat = (typeof IMAGE_FORMATS)[number]

/** How many bytes an image holds once decoded. */
export type VirtualSize =
  | { readonly kind: 'exact'; readonly bytes: number }
  /** The format cannot say: at least so many (gzip keeps its size modulo 4 GiB). */
  | { readonly kind: 'at-least'; readonly bytes: number }
  | { readonly kind: 'unknown' }

/** One image as a flash plan needs it; `name` is safe to show (no credentials). */
export interface ImageFacts {
  readonly name: string
  readonly path: string | null
  readonly url: string | null
  readonly format: ImageFormat | null
  /** Bytes as stored; null where the source does not say (standard input, some servers). */
  readonly sizeBytes: number | null
  readonly virtual: VirtualSize
}

/** What the first bytes of a file say it is; `raw` when they say nothing. */
export type Content =
  | 'zst'
  | 'xz'
  | 'gz'
  | 'bz2'
  | 'qcow2'
  | 'tar'
  | 'zip'
  | 'lz4'
  | '7z'
  | 'vmdk'
  | 'vhdx'
  | 'raw'

/** The format a file name promises, in any case; null when it is none that we write. */
export function detectFormat(name: string): ImageFormat | null {
  const lower = name.toLowerCase()
  return IMAGE_FORMATS.find((format) => lower.endsWith(`.${format}`)) ?? null
}

const TARBALL = /\.(tar|tar\.\w+|tgz|tbz2?|txz|tzst)$/i
export const isTarballName = (name: string): boolean => TARBALL.test(name)

const ascii = (text: string) => Buffer.from(text, 'latin1')
/** Magic bytes and where they stand. */
const MAGIC: readonly (readonly [Content, number, Buffer])[] = [
  ['zst', 0, Buffer.from('28b52ffd', 'hex')],
  ['xz', 0, Buffer.from('fd377a585a00', 'hex')],
  ['gz', 0, Buffer.from('1f8b08', 'hex')],
  ['bz2', 0, ascii('BZh')],
  ['qcow2', 0, ascii('QFI\xfb')],
  ['zip', 0, Buffer.from('504b0304', 'hex')],
  ['lz4', 0, Buffer.from('04224d18', 'hex')],
  ['7z', 0, Buffer.from('377abcaf271c', 'hex')],
  ['vmdk', 0, ascii('KDMV')],
  ['vhdx', 0, ascii('vhdxfile')],
  ['tar', 257, ascii('ustar')],
]

/** A zstd file may open with a skippable frame (pzstd's do): 0x184D2A50 to 0x184D2A5F. */
const isSkippableFrame = (head: Buffer) =>
  head.length >= 4 && (head.readUInt32LE(0) & 0xfffffff0) >>> 0 === 0x184d2a50

/** What the first bytes are (512 are enough). */
export function detectContent(head: Buffer): Content {
  if (isSkippableFrame(head)) return 'zst'
  const hit = MAGIC.find(([, at, magic]) => head.subarray(at, at + magic.length).equals(magic))
  return hit?.[0] ?? 'raw'
}

export const CONTENT_OF: Readonly<Record<ImageFormat, Content>> = {
  'img.zst': 'zst',
  'img.xz': 'xz',
  'img.gz': 'gz',
  'img.bz2': 'bz2',
  qcow2: 'qcow2',
  img: 'raw',
}

export interface ContentMismatch {
  readonly why: 'content-mismatch'
  readonly format: ImageFormat
  readonly found: Content
}

/** Whether the first bytes are what the name promises. */
export function checkContent(format: ImageFormat, head: Buffer): Result<Content, ContentMismatch> {
  const found = detectContent(head)
  return found === CONTENT_OF[format]
    ? accept(found)
    : refuse({ why: 'content-mismatch', format, found })
}

/** The mismatch in words, with the way out. */
export function renderMismatch(name: string, { format, found }: ContentMismatch): string {
  if (found === 'tar') return `${name} is a tarball: extract first`
  if (found === 'raw') return `${name} is named .${format} but does not hold ${format} data`
  const suffix = Object.entries(CONTENT_OF).find(([, content]) => content === found)?.[0]
  const way = suffix === undefined ? 'extract or convert it first' : `name it .${suffix}`
  return `${name} is named .${format} but holds ${found} data: ${way}`
}
