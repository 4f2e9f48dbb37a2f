/** Checks an image's first bytes: whether it is what its name says, a disk image, and for which sector size. */
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { hasFileSystem, SIGNATURE_BYTES } from '#engine/disk/rules/file-systems.ts'
import {
  isExtendedType,
  parseDosTable,
  parseTableSector,
} from '#engine/disk/rules/partition-tables.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { renderCoding, type Sent } from '#kit/net/rules/http-range.ts'
import {
  type ContentMismatch,
  detectContent,
  formatOfContent,
  FORMATS,
  isStoredRaw,
} from './format.ts'
import type { ImageFacts, ImageInfo } from './image.ts'

export interface FittedImage {
  readonly image: ImageFacts & { readonly format: ImageFormat }
  readonly target: {
    readonly path: string
    readonly identity: { readonly sizeBytes: number }
    readonly sectorBytes: number
  }
}

interface HeadOptions {
  /** The bytes were decoded from this; absent or null: unknown. */
  readonly format?: ImageFormat | null | undefined
  /** Somebody said that it is written whatever it looks like. */
  readonly anyContent?: boolean | undefined
  readonly sent?: Sent | undefined
}

/** The refusal is a sentence with a hint. */
export function checkHead(
  name: string,
  head: Buffer,
  sectorBytes: number,
  { format, anyContent, sent }: HeadOptions = {},
): Result<null, string> {
  if (head.length === 0) return refuse(`${name} is empty`)
  // A named compression does not say that an archive inside is meant for a disk.
  const content = anyContent === true && isStoredRaw(format) ? 'raw' : detectContent(head)
  if (content === 'tar') return refuse(`${name} holds a tarball: extract first`)
  const way = sent?.coding ? renderCoding(sent.coding) : 'extract it first'
  if (content !== 'raw') return refuse(`${name} holds ${content} data inside: ${way}`)
  return checkSectors(name, head, sectorBytes)
}

function checkSectors(name: string, head: Buffer, sectorBytes: number): Result<null, string> {
  const tableSector = parseTableSector(head)
  return tableSector === null || tableSector === sectorBytes
    ? accept(null)
    : refuse(
        `${name} is made for disks with ${tableSector}-byte sectors, but this disk has ${sectorBytes}-byte sectors`,
      )
}

/** One sentence with a fix: a catalog or an option can name the format as well. */
export function renderMismatch(
  {
    name,
    fileName = name,
    sent,
  }: { readonly name: string; readonly fileName?: string; readonly sent?: Sent | undefined },
  { format, found }: ContentMismatch,
): string {
  if (found === 'tar') return `${name} is a tarball: extract first`
  const isName = fileName.toLowerCase().endsWith(`.${format}`)
  const claim = isName ? `is named .${format}` : `is said to be of format ${format}`
  const holds = found === 'raw' ? `does not hold ${format} data` : `holds ${found} data`
  const words = `${name} ${claim} but ${holds}`
  if (sent?.coding) return `${words}: ${renderCoding(sent.coding)}`
  return found === 'raw' ? words : `${words}: ${findWay(found, isName)}`
}

function findWay(found: string, isName: boolean): string {
  const right = formatOfContent(found)
  if (right === null) return 'extract or convert it first'
  return isName ? `name it .${right}` : `say ${right}`
}

// Finds out for which sectors an MBR was made: it counts in sectors, and does not say in which.

/** Nearly all images are made for these; with other sectors every address is another one. */
const USUAL = 512

/** Its place on this disk, and on one of the usual sectors. */
interface DosRange {
  readonly number: number
  readonly here: Range
  readonly usual: Range
}

export function listDosRanges(head: Buffer, sectorBytes: number): readonly DosRange[] {
  if (sectorBytes === USUAL || parseTableSector(head) !== null) return []
  return (parseDosTable(head) ?? []).map(({ number, first, sectors, type }) => {
    const at = (bytes: number): Range => ({
      offset: first * bytes,
      bytes: isExtendedType(type) ? 0 : Math.min(SIGNATURE_BYTES, sectors * bytes),
    })
    return { number, here: at(sectorBytes), usual: at(USUAL) }
  })
}

/** By the table alone; null: it can be meant for this disk. */
export function findBeyond(
  head: Buffer,
  disk: { readonly sizeBytes: number; readonly sectorBytes: number },
): string | null {
  if (disk.sectorBytes === USUAL || parseTableSector(head) !== null) return null
  const beyond = (parseDosTable(head) ?? []).find(
    ({ first, sectors }) => (first + sectors) * disk.sectorBytes > disk.sizeBytes,
  )
  return beyond === undefined
    ? null
    : `with its ${disk.sectorBytes}-byte sectors, partition ${beyond.number} would end beyond the disk; the image is made for ${USUAL}-byte sectors, or for a larger disk`
}

export type SectorVerdict =
  | { readonly kind: 'fits' }
  | { readonly kind: 'other'; readonly reason: string }
  /** No file system is known at either place. */
  | { readonly kind: 'unseen' }

/** Null: not read. */
type ReadSectors = (range: Range) => Buffer | null

export function decideSectors(ranges: readonly DosRange[], seen: ReadSectors): SectorVerdict {
  if (ranges.length === 0) return { kind: 'fits' }
  const isThere = (range: Range) => {
    const first = range.bytes === 0 ? null : seen(range)
    return first !== null && hasFileSystem(first)
  }
  if (ranges.some(({ here }) => isThere(here))) return { kind: 'fits' }
  const other = ranges.find(({ usual }) => isThere(usual))
  if (other === undefined) return { kind: 'unseen' }
  const reason = `it is made for disks with ${USUAL}-byte sectors: the file system of partition ${other.number} begins at byte ${other.usual.offset}, where this disk would look for it at byte ${other.here.offset}`
  return { kind: 'other', reason }
}

export const renderUnseen = (sectorBytes: number): string =>
  `its MBR does not say for which sectors it is made, and no file system shows it: most images are made for ${USUAL}-byte sectors, but this disk has ${sectorBytes}-byte sectors`

type Detail = NonNullable<ImageInfo['detail']>

interface PlannedInspection {
  readonly argv: readonly [string, ...string[]]
  parse(output: string): Result<Detail, string>
}

/** Null: no tool knows more than we do. */
export function planInspection(format: ImageFormat, path: string): PlannedInspection | null {
  const inspection = FORMATS[format].inspect?.(path)
  return inspection === undefined
    ? null
    : { argv: inspection.argv, parse: PARSERS[inspection.prints] }
}

const PARSERS = {
  text: (output: string): Result<Detail, string> => accept(output.trim()),
  object: parseObject,
} as const

function parseObject(output: string): Result<Detail, string> {
  const parsed = parseJson(output)
  if (isRecord(parsed)) return accept(parsed)
  return refuse('the tool answered with something else than a JSON object')
}
