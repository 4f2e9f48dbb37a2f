/** Judges the first bytes of a raw image: what they are instead, which of its partitions end beyond its end, and what else should be known. */
import { Fault } from '#kit/foundation/fault.ts'
import { isUnmarked, renderCoding, type Sent } from '#kit/net/rules/http-range.ts'
import {
  parseDosTable,
  parsePartitions,
  parseTableSector,
} from '#engine/disk/rules/partition-tables.ts'

/** Null: these may be a disk's bytes. */
export function findForeign(
  { name, sent }: { readonly name: string; readonly sent?: Sent | undefined },
  head: Buffer,
): Fault | null {
  const page = describePage(head)
  if (page !== null) return notAnImage(name, `it holds ${page}`)
  const coding = sent !== undefined && isUnmarked(sent) ? sent.coding : null
  return coding === null || isDiskImage(head) ? null : notAnImage(name, renderCoding(coding))
}

/** For people; `imageBytes` null: unknown yet. */
export function describeRaw(
  head: Buffer,
  imageBytes: number | null,
): { readonly notes: readonly string[]; readonly isCut: boolean } {
  if (!isKnownStart(head)) return { notes: [NOBODYS], isCut: false }
  const cut = imageBytes === null ? null : describeCut(head, imageBytes)
  return { notes: cut === null ? [] : [cut], isCut: cut !== null }
}

/** Null: no partition ends beyond the image's end. */
export const describeCut = (head: Buffer, imageBytes: number): string | null =>
  renderShortfall(findCutPartitions(head, imageBytes))

const NOBODYS =
  'the image does not begin with a known partition table or file system; it is written unchanged'

interface CutPartition {
  readonly number: number
  readonly missingBytes: number
}

/** An MBR for disks of 4096 reaches further than this says. */
const DOS_SECTOR = 512

/** `head`: the first bytes with the whole table. Damaged tables say nothing. */
export function findCutPartitions(head: Buffer, imageBytes: number): readonly CutPartition[] {
  return listPartitions(head).flatMap(({ number, offset, bytes }) => {
    const missingBytes = Math.min(bytes, offset + bytes - imageBytes)
    return missingBytes > 0 ? [{ number, missingBytes }] : []
  })
}

function listPartitions(head: Buffer) {
  const sectorBytes = parseTableSector(head)
  if (sectorBytes !== null) {
    const partitions = parsePartitions(head, sectorBytes)
    return partitions.ok ? partitions.value : []
  }
  return (parseDosTable(head) ?? []).map(({ number, first, sectors }) => ({
    number,
    offset: first * DOS_SECTOR,
    bytes: sectors * DOS_SECTOR,
  }))
}

const MAX_NAMED = 4

/** Null: nothing is missing. */
export function renderShortfall(cut: readonly CutPartition[]): string | null {
  if (cut.length === 0) return null
  const named = cut.slice(0, MAX_NAMED).map(renderPartition)
  const more = cut.length > MAX_NAMED ? [`and ${cut.length - MAX_NAMED} more`] : []
  const parts = [...named, ...more].join(', ')
  return `by its own partition table the image is cut off: ${parts}; if it does not end early on purpose, compare its checksum`
}

const renderPartition = ({ number, missingBytes }: CutPartition) =>
  `partition ${number} ends beyond the end of the image (${missingBytes} bytes are missing)`

/** Every mark but those of btrfs is within so many bytes. */
export const MARK_BYTES: number = 64 * 1024

export type Mark = readonly [at: number, bytes: Buffer]

const ascii = (at: number, text: string): Mark => [at, Buffer.from(text, 'latin1')]
const hex = (at: number, text: string): Mark => [at, Buffer.from(text, 'hex')]

const ISO_9660 = [ascii(0x8001, 'CD001'), ascii(0x8001, 'BEA01')]
const APPLE_MAP = ascii(0, 'ER')
const APPLE_ENTRY = ascii(512, 'PM')

const OTHERS: readonly Mark[] = [
  hex(510, '55aa'),
  hex(1080, '53ef'),
  ascii(0, 'XFSB'),
  ascii(0x10040, '_BHRfS_M'),
  ascii(0, 'LUKS\u00ba\u00be'),
  ascii(512, 'LABELONE'),
  ascii(4086, 'SWAPSPACE2'),
  ascii(0, 'hsqs'),
  hex(1024, 'e2e1f5e0'),
  hex(1024, '1020f5f2'),
]

const has = (head: Buffer, [at, bytes]: Mark): boolean =>
  head.subarray(at, at + bytes.length).equals(bytes)

export const isDiskImage = (head: Buffer): boolean =>
  parseTableSector(head) !== null ||
  parseDosTable(head) !== null ||
  ISO_9660.some((mark) => has(head, mark)) ||
  (has(head, APPLE_MAP) && has(head, APPLE_ENTRY))

/** Known content begins like this, so that it may well be meant for a disk. */
export const isKnownStart = (head: Buffer): boolean =>
  isDiskImage(head) || OTHERS.some((mark) => has(head, mark))

/** Text that reaches this end goes on behind it. */
const SAMPLE_BYTES = 64 * 1024

const KINDS = [
  ['an HTML page', /^(<!--[^]*?-->\s*)*<(!doctype\s+html|html|head|body|title|script|meta)\b/i],
  ['an XML document', /^<(\?xml|!doctype|!--|[a-z][\w.:-]*[\s/>])/i],
  ['a JSON document', /^(\{\s*["}]|\[\s*[[{"\]\d])/],
] as const

/** Words to stand behind "holds"; null: no text. */
export function describePage(head: Buffer): string | null {
  const text = parseText(head.subarray(0, SAMPLE_BYTES))
  if (text === null) return null
  const [first = ''] = text
  // A test pattern of one printable byte is no text.
  if (text.length > 1 && first.trim() !== '' && text === first.repeat(text.length)) return null
  const start = text.trimStart()
  const found = KINDS.find(([, pattern]) => pattern.test(start))
  if (found !== undefined) return found[0]
  return start === '' ? 'nothing but blanks' : 'plain text'
}

const NO_TEXT = /(?![\b\t\n\v\f\r\u0080-\u009f])\p{Cc}/u

const ENCODINGS = [
  ['utf-16le', Buffer.from([0xff, 0xfe])],
  ['utf-16be', Buffer.from([0xfe, 0xff])],
] as const

/** Null: no text. Skips a character that is cut off. */
function parseText(bytes: Buffer): string | null {
  if (bytes.length === 0) return null
  const mark = ENCODINGS.find(([, order]) => bytes.subarray(0, 2).equals(order))
  const text = decode(bytes, mark?.[0] ?? 'utf-8') ?? (mark === undefined ? asLatin(bytes) : null)
  return text === null || text === '' || NO_TEXT.test(text) ? null : text
}

function decode(bytes: Buffer, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}

/** Older pages are in Latin-1: most of their bytes are ASCII. */
function asLatin(bytes: Buffer): string | null {
  const others = bytes.reduce((count, byte) => count + (byte < 0x80 ? 0 : 1), 0)
  return bytes.length >= 64 && others * 3 < bytes.length ? bytes.toString('latin1') : null
}

export const notAnImage = (name: string, what: string): Fault =>
  new Fault('plan-refused', `${name} is not a disk image: ${what}`, { hint: OVERRIDE })

/** For every surface: a command has the option, a catalog the field. */
const OVERRIDE =
  'If it is meant to be written as it is, name its format with --format, or set any_content in the catalog.'
