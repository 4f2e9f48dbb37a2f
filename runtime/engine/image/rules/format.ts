/** What our programs know of each image format: how its content begins, where it can be entered, what inspects it. */
import type { Mark } from './raw-image.ts'
import { IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isSkippableMagic, legacyVersion } from './zstd.ts'

/** `formats.ts` has a row for each as well. */
interface FormatRow {
  readonly content: string
  /** 512 bytes are enough; raw images have no beginning of their own. */
  readonly begins: (head: Buffer) => boolean
  /** `anywhere`: stored as it will be on the disk; `by-tables`: never read in order. */
  readonly entered: 'anywhere' | 'at-frames' | 'by-tables' | 'at-its-start'
  /** Its size field may be too small by any amount. */
  readonly sizeWraps: boolean
  readonly isSlow: boolean
  /** The better one first; none: we decode it ourselves. */
  readonly tools: readonly Argv[]
  /** Shows more than we know; null: nothing does. */
  readonly inspect: ((path: string) => Inspection) | null
}

type Argv = readonly [string, ...string[]]

interface Inspection {
  readonly argv: Argv
  readonly prints: 'text' | 'object'
}

const ascii = (text: string) => Buffer.from(text, 'latin1')
const hex = (text: string) => Buffer.from(text, 'hex')

const has = (head: Buffer, [at, bytes]: Mark): boolean =>
  head.subarray(at, at + bytes.length).equals(bytes)

const beginsWith = (bytes: Buffer) => (head: Buffer) => has(head, [0, bytes])

const USUAL = { sizeWraps: false, isSlow: false, tools: [], inspect: null } as const

export const FORMATS: Readonly<Record<ImageFormat, FormatRow>> = {
  'img.zst': {
    ...USUAL,
    content: 'zst',
    begins: (head) => has(head, [0, ZSTD]) || isOtherZstd(head),
    entered: 'at-frames',
    inspect: (path) => ({ argv: ['zstd', '-l', '-f', '--', path], prints: 'text' }),
  },
  'img.xz': {
    ...USUAL,
    content: 'xz',
    begins: beginsWith(hex('fd377a585a00')),
    entered: 'at-its-start',
    isSlow: true,
    // Two threads hold two blocks of the usual 24 MiB; more memory is not worth it.
    tools: [['xz', '--decompress', '--stdout', '--threads=2', '--memlimit-mt-decompress=75MiB']],
    // An index may claim to be huge.
    inspect: (path) => ({
      argv: ['xz', '--list', '--memlimit-decompress=256MiB', '--', path],
      prints: 'text',
    }),
  },
  'img.gz': {
    ...USUAL,
    content: 'gz',
    begins: beginsWith(hex('1f8b08')),
    entered: 'at-its-start',
    // Size modulo 4 GiB.
    sizeWraps: true,
  },
  'img.bz2': {
    ...USUAL,
    content: 'bz2',
    begins: beginsWith(ascii('BZh')),
    entered: 'at-its-start',
    isSlow: true,
    tools: [
      ['lbzip2', '--decompress', '--stdout', '-n', '2'],
      ['bzip2', '--decompress', '--stdout'],
    ],
  },
  qcow2: {
    ...USUAL,
    content: 'qcow2',
    begins: beginsWith(ascii('QFI\xfb')),
    entered: 'by-tables',
    // Never without -f: a guessed format can make the tool open any other file.
    inspect: (path) => ({
      argv: ['qemu-img', 'info', '-f', 'qcow2', '--output=json', '--', plainPath(path)],
      prints: 'object',
    }),
  },
  img: { ...USUAL, content: 'raw', begins: () => false, entered: 'anywhere' },
}

const ZSTD = hex('28b52ffd')

/** With a skippable frame first (pzstd), or of a version before 0.8. */
function isOtherZstd(head: Buffer): boolean {
  if (head.length < 4) return false
  const magic = head.readUInt32LE(0)
  return isSkippableMagic(magic) || legacyVersion(magic) !== null
}

/** qemu-img takes what precedes a colon for a protocol, unless a slash comes first. */
const plainPath = (path: string) => (/^[^/]*:/.test(path) ? `./${path}` : path)

/** False for an unknown format. */
export const isStoredRaw = (format: ImageFormat | null | undefined): boolean =>
  format !== null && format !== undefined && FORMATS[format].entered === 'anywhere'

/** Its digest takes a reading of its own. */
export const isOutOfOrder = (format: ImageFormat | null): boolean =>
  format !== null && FORMATS[format].entered === 'by-tables'

/** By the ending, in any case; null: none that we write. */
export function detectFormat(name: string): ImageFormat | null {
  const lower = name.toLowerCase()
  return IMAGE_FORMATS.find((format) => lower.endsWith(`.${format}`)) ?? null
}

const TARBALL = /\.(tar|tar\.\w+|tgz|tbz2?|txz|tzst)$/i
export const isTarballName = (name: string): boolean => TARBALL.test(name)

const OTHERS: readonly (readonly [content: string, ...mark: Mark])[] = [
  ['zip', 0, hex('504b0304')],
  ['lz4', 0, hex('04224d18')],
  ['7z', 0, hex('377abcaf271c')],
  ['vmdk', 0, ascii('KDMV')],
  ['vhdx', 0, ascii('vhdxfile')],
  ['vhd', 0, ascii('conectix')],
  ['vdi', 64, hex('7f10dabe')],
  ['android-sparse', 0, hex('3aff26ed')],
  ['rar', 0, ascii('Rar!\x1a\x07')],
  ['cab', 0, ascii('MSCF\0\0\0\0')],
  ['wim', 0, ascii('MSWIM\0\0\0')],
  ['lzip', 0, ascii('LZIP\x01')],
  ['lzop', 0, ascii('\x89LZO\0\r\n\x1a\n')],
  ['cpio', 0, ascii('07070')],
  ['ar', 0, ascii('!<arch>\n')],
  ['pdf', 0, ascii('%PDF-')],
  ['tar', 257, ascii('ustar')],
]

/** 512 bytes are enough; `raw`: they do not show it. */
export function detectContent(head: Buffer): string {
  const format = IMAGE_FORMATS.find((name) => FORMATS[name].begins(head))
  if (format !== undefined) return FORMATS[format].content
  return OTHERS.find(([, ...mark]) => has(head, mark))?.[0] ?? 'raw'
}

/** Null: none that we write. */
export const formatOfContent = (content: string): ImageFormat | null =>
  IMAGE_FORMATS.find((format) => FORMATS[format].content === content) ?? null

export interface ContentMismatch {
  readonly why: 'content-mismatch'
  readonly format: ImageFormat
  /** `raw`: the first bytes say nothing. */
  readonly found: string
}

export function checkContent(format: ImageFormat, head: Buffer): Result<string, ContentMismatch> {
  const found = detectContent(head)
  return found === FORMATS[format].content
    ? accept(found)
    : refuse({ why: 'content-mismatch', format, found })
}
