/** The image formats that we write, recognised by name and by content ("Recognised image formats"). */
import type { Sent } from '../../../kit/net/rules/sent.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { isSkippableMagic, legacyVersion } from './zstd.ts'

/** Most specific first: the order in which names are matched. */
export const IMAGE_FORMATS = ['img.zst', 'img.xz', 'img.gz', 'img.bz2', 'qcow2', 'img'] as const
export type ImageFormat = (typeof IMAGE_FORMATS)[number]

export const DEFAULT_IMAGE_ROOT = '/var/lib/flasher/images'

/** The image root: the flag, FLASHER_IMAGE_ROOT, the default; the first that is not empty. */
export const resolveImageRoot = (
  flag: string | null | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string => flag || env['FLASHER_IMAGE_ROOT'] || DEFAULT_IMAGE_ROOT

/** The path of a file in a root: relative where the root is; nothing but `.` and doubled `/` goes. */
export function joinImagePath(root: string, name: string): string {
  const folders = root.split('/').filter((folder) => folder !== '' && folder !== '.')
  return (root.startsWith('/') ? '/' : '') + [...folders, name].join('/')
}

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
  /** What a person should know of its content; absent: nothing is. */
  readonly notes?: readonly string[]
  /** Its own partition table says that it ends too early. */
  readonly isCut?: boolean
  /** Bytes as stored, as a catalog says; absent: none does. */
  readonly expectedBytes?: number
  /** Somebody said that it is written whatever it looks like. */
  readonly anyContent?: boolean
  /** What a web server says of the bytes; absent where none was asked. */
  readonly sent?: Sent
}

/** One row of `flasher list images --json`; the spelling is the spec's ("ImageEntry"). */
export interface ImageRow {
  readonly name: string
  /** The root as it was given, joined with the name. */
  readonly path: string
  readonly format: ImageFormat
  readonly size_bytes: number
}

/** What an index, or at least a seek table, says of the frames of a file. */
interface FramesInfo {
  readonly count: number
  /** The rest is known only where there is an index. */
  readonly zero_count?: number
  readonly image_sha256?: string
  readonly index_sha256?: string
}

/** What `flasher inspect image` shows of one file; the spelling is the spec's ("Image info"). */
export interface ImageInfo {
  /** As it was given. */
  readonly path: string
  /** By the name, else by the content; null for a folder and for what we do not write. */
  readonly format: ImageFormat | null
  readonly size_bytes: number
  /** Bytes once decoded; null unless the file says exactly. */
  readonly virtual_size_bytes: number | null
  /** Only where the file gives no more than a lower bound. */
  readonly virtual_size_at_least_bytes?: number
  /** Only where the file can be entered at frames of its own (docs/image-format.md). */
  readonly frames?: FramesInfo
  /** The format's own tool: an object for qcow2, text for zst and xz. */
  readonly detail?: Readonly<Record<string, unknown>> | string
  /** Why there is no detail, or why the file cannot be written. */
  readonly detail_error?: string
}

/** The format a file name promises, in any case; null when it is none that we write. */
export function detectFormat(name: string): ImageFormat | null {
  const lower = name.toLowerCase()
  return IMAGE_FORMATS.find((format) => lower.endsWith(`.${format}`)) ?? null
}

const TARBALL = /\.(tar|tar\.\w+|tgz|tbz2?|txz|tzst)$/i
export const isTarballName = (name: string): boolean => TARBALL.test(name)

const ascii = (text: string) => Buffer.from(text, 'latin1')
/** Magic bytes and where they stand. */
const MAGIC = [
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
  ['vhd', 0, ascii('conectix')],
  ['vdi', 64, Buffer.from('7f10dabe', 'hex')],
  ['android-sparse', 0, Buffer.from('3aff26ed', 'hex')],
  ['rar', 0, ascii('Rar!\x1a\x07')],
  ['cab', 0, ascii('MSCF\0\0\0\0')],
  ['wim', 0, ascii('MSWIM\0\0\0')],
  ['lzip', 0, ascii('LZIP\x01')],
  ['lzop', 0, ascii('\x89LZO\0\r\n\x1a\n')],
  ['cpio', 0, ascii('07070')],
  ['ar', 0, ascii('!<arch>\n')],
  ['pdf', 0, ascii('%PDF-')],
  ['tar', 257, ascii('ustar')],
] as const

/** What the first bytes of a file say it is; `raw` when they say nothing. */
export type Content = (typeof MAGIC)[number][0] | 'raw'

/** A zstd file may open with a skippable frame (pzstd's do), or be of a version before 0.8. */
function isZstdMagic(head: Buffer): boolean {
  if (head.length < 4) return false
  const magic = head.readUInt32LE(0)
  return isSkippableMagic(magic) || legacyVersion(magic) !== null
}

/** What the first bytes are (512 are enough). */
export function detectContent(head: Buffer): Content {
  if (isZstdMagic(head)) return 'zst'
  const hit = MAGIC.find(([, at, magic]) => head.subarray(at, at + magic.length).equals(magic))
  return hit?.[0] ?? 'raw'
}

const CONTENT_OF: Readonly<Record<ImageFormat, Content>> = {
  'img.zst': 'zst',
  'img.xz': 'xz',
  'img.gz': 'gz',
  'img.bz2': 'bz2',
  qcow2: 'qcow2',
  img: 'raw',
}

/** The format whose files have this content; null: it is none that we write. */
export const formatOfContent = (content: Content): ImageFormat | null =>
  IMAGE_FORMATS.find((format) => CONTENT_OF[format] === content) ?? null

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
