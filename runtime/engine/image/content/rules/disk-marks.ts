/** Recognises a disk image by its marks: a partition table, an ISO 9660 volume, a file system. */
import { parseDosTable } from '#engine/disk/rules/tables/dos-table.ts'
import { parseTableSector } from '#engine/disk/rules/tables/gpt.ts'

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
