/** What our programs know of each image format: how its content begins, where it can be entered, what inspects it. */
import type { Mark } from '../content/rules/disk-marks.ts'
import { IMAGE_FORMATS, type ImageFormat } from '../../../../appliance/disk-images.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { isSkippableMagic, legacyVersion } from './zstd.ts'

/** What opens, measures and checks a format lies in `formats.ts`, where each has a row as well. */
interface FormatRow {
  readonly content: string
  /** Whether these first bytes (512 are enough) are its own; raw images have none of their own. */
  readonly begins: (head: Buffer) => boolean
  /**
   * Where the image can be entered: at any byte, because it is stored as it will lie on the disk; at
   * frames of its own; by tables that lie anywhere in it, so that it is never read in order; or only
   * at its start.
   */
  readonly entered: 'anywhere' | 'at-frames' | 'by-tables' | 'at-its-start'
  /** Whether what it says of its size may be too little by any amount. */
  readonly sizeWraps: boolean
  /** Whether it is decoded more slowly than any disk writes. */
  readonly isSlow: boolean
  /** Programs that decode it, the better one first; none: we do it ourselves. */
  readonly tools: readonly Argv[]
  /** What shows more of a file than we know; null: nothing does. */
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
    // --force: links are listed as well.
    inspect: (path) => ({ argv: ['zstd', '-l', '-f', '--', path], prints: 'text' }),
  },
  'img.xz': {
    ...USUAL,
    content: 'xz',
    begins: beginsWith(hex('fd377a585a00')),
    entered: 'at-its-start',
    isSlow: true,
    // Two threads hold two blocks of the usual 24 MiB; more memory than that is not worth it.
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
    // It keeps its size modulo 4 GiB.
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
    // Never without -f: a file whose format is guessed can make the tool open any other file.
    inspect: (path) => ({
      argv: ['qemu-img', 'info', '-f', 'qcow2', '--output=json', '--', plainPath(path)],
      prints: 'object',
    }),
  },
  img: { ...USUAL, content: 'raw', begins: () => false, entered: 'anywhere' },
}

const ZSTD = hex('28b52ffd')

/** A zstd file may open with a skippable frame (pzstd's do), or be of a version before 0.8. */
function isOtherZstd(head: Buffer): boolean {
  if (head.length < 4) return false
  const magic = head.readUInt32LE(0)
  return isSkippableMagic(magic) || legacyVersion(magic) !== null
}

/** qemu-img takes what stands before a colon for a protocol, unless a slash comes first. */
const plainPath = (path: string) => (/^[^/]*:/.test(path) ? `./${path}` : path)

/** False for an unknown format, of which nobody knows. */
export const isStoredRaw = (format: ImageFormat | null | undefined): boolean =>
  format !== null && format !== undefined && FORMATS[format].entered === 'anywhere'

/** Its digest then takes a reading of its own. */
export const isOutOfOrder = (format: ImageFormat | null): boolean =>
  format !== null && FORMATS[format].entered === 'by-tables'

/** By the name's ending, in any case; null when it is none that we write. */
export function detectFormat(name: string): ImageFormat | null {
  const lower = name.toLowerCase()
  return IMAGE_FORMATS.find((format) => lower.endsWith(`.${format}`)) ?? null
}

const TARBALL = /\.(tar|tar\.\w+|tgz|tbz2?|txz|tzst)$/i
export const isTarballName = (name: string): boolean => TARBALL.test(name)

/** What we recognise in order to say what it is, and do not write. */
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

/** Names what the first bytes are (512 are enough); `raw` when they do not show it. */
export function detectContent(head: Buffer): string {
  const format = IMAGE_FORMATS.find((name) => FORMATS[name].begins(head))
  if (format !== undefined) return FORMATS[format].content
  return OTHERS.find(([, ...mark]) => has(head, mark))?.[0] ?? 'raw'
}

/** Null when it is none that we write. */
export const formatOfContent = (content: string): ImageFormat | null =>
  IMAGE_FORMATS.find((format) => FORMATS[format].content === content) ?? null

export interface ContentMismatch {
  readonly why: 'content-mismatch'
  readonly format: ImageFormat
  /** What the first bytes are instead; `raw` when they say nothing. */
  readonly found: string
}

/** The refusal holds what was found instead. */
export function checkContent(format: ImageFormat, head: Buffer): Result<string, ContentMismatch> {
  const found = detectContent(head)
  return found === FORMATS[format].content
    ? accept(found)
    : refuse({ why: 'content-mismatch', format, found })
}
