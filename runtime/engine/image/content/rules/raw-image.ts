/** Judges the first bytes of a raw image: what they are instead, which of its partitions end beyond its end, and what else should be known. */
import type { Fault } from '#kit/foundation/fault.ts'
import { isDiskImage, isKnownStart } from './disk-marks.ts'
import { describePage, notAnImage } from './page.ts'
import { isUnmarked, renderCoding, type Sent } from '#kit/net/rules/sent.ts'
import { parseDosTable } from '#engine/disk/rules/tables/dos-table.ts'
import { parseTableSector } from '#engine/disk/rules/tables/gpt.ts'
import { parsePartitions } from '#engine/disk/rules/tables/partitions.ts'

interface Stored {
  readonly name: string
  readonly sent?: Sent | undefined
}

/** Null: these may be a disk's bytes. */
export function findForeign({ name, sent }: Stored, head: Buffer): Fault | null {
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
  'no partition table or file system that is known begins the image; it is written as it is'

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
