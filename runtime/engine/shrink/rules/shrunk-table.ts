/** The partition table of a shrunk image, and the places that boot sectors know of themselves. */
import {
  changeDosLast,
  changeLast,
  hasDosSignature,
  moveBackup,
  parseTable,
} from '#engine/disk/rules/partition-tables.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Layout, Place, ShrinkDisk } from './shrink-plan.ts'

export interface Patch {
  readonly offset: number
  readonly bytes: Buffer
}

/** Numbers, identities and attributes stay. Throws where the table cannot say it. */
export function planHead(
  disk: ShrinkDisk,
  { places, sizeBytes }: Layout,
): { readonly head: Buffer; readonly backup: Patch | null } {
  const { sectorBytes } = disk
  let { head } = disk
  for (const { number, to, bytes } of places) {
    const [first, sectors] = [to / sectorBytes, bytes / sectorBytes]
    if (!disk.isGpt) {
      if (first + sectors > 0xffff_ffff) throw cannotSay()
      head = changeDosLast(head, number, sectors, first)
      continue
    }
    const table = parseTable(head, sectorBytes)
    if (table === null) throw cannotSay()
    const place = { number, firstSector: first, lastSector: first + sectors - 1 }
    head = changeLast(head, table, place, sectorBytes)
  }
  if (!disk.isGpt) return { head, backup: null }
  const moved = moveBackup(head, sizeBytes, sectorBytes)
  if (!moved.ok) throw cannotSay()
  const { backup, offset } = moved.value
  return { head: moved.value.head, backup: { offset, bytes: backup } }
}

const cannotSay = () =>
  new Fault('plan-refused', 'the partition table cannot hold the shrunk image')

export const SECTOR_AT = 11
const HIDDEN_AT = 28
export const NTFS_NAME = 'NTFS    '
const FAT_AT = { reserved: 14, backup: 0x32 } as const

/** Of a partition, on either side. */
export const EDGE_BYTES: number = 4096

/**
 * *Hidden sectors*, the place of the partition in its boot sector and in the copy of it: patches, with
 * offsets in the partition. `start`: as far as a copy is looked for; `end`: its edge.
 */
export function planHiddenSectors(place: Place, start: Buffer, end: Buffer): readonly Patch[] {
  const isMoved = place.from !== place.to
  if (place.kind === 'fat' && isMoved) return patchFat(place, start)
  const isShrunk = place.bytes < place.oldBytes
  return place.kind === 'ntfs' && (isMoved || isShrunk) ? patchNtfs(place, start, end) : []
}

function renderHidden({ to }: Place, sectorBytes: number): Buffer {
  const hidden = Buffer.alloc(4)
  const sector = to / sectorBytes
  const isFit = sectorBytes <= EDGE_BYTES && Number.isInteger(sector) && sector <= 0xffff_ffff
  if (!isFit) throw cannotSay()
  hidden.writeUInt32LE(sector)
  return hidden
}

function patchFat(place: Place, start: Buffer): readonly Patch[] {
  const sectorBytes = start.readUInt16LE(SECTOR_AT)
  const bytes = renderHidden(place, sectorBytes)
  const isFat32 = start.readUInt16LE(22) === 0
  const copy = isFat32 ? start.readUInt16LE(FAT_AT.backup) : 0
  const there = start.subarray(copy * sectorBytes).subarray(0, sectorBytes)
  const isReserved = copy < start.readUInt16LE(FAT_AT.reserved)
  const hasCopy = copy > 0 && isReserved && hasDosSignature(there) && isJump(there)
  const sectors = hasCopy ? [0, copy] : [0]
  return sectors.map((sector) => ({ offset: sector * sectorBytes + HIDDEN_AT, bytes }))
}

const isJump = (boot: Buffer) => [0xeb, 0xe9].includes(boot.readUInt8(0))

/** Its copy is in the partition's last sector. */
function patchNtfs(place: Place, start: Buffer, end: Buffer): readonly Patch[] {
  const sectorBytes = start.readUInt16LE(SECTOR_AT)
  const boot = Buffer.from(start.subarray(0, sectorBytes))
  if (place.from !== place.to) renderHidden(place, sectorBytes).copy(boot, HIDDEN_AT)
  const there = end.subarray(Math.max(0, EDGE_BYTES - sectorBytes))
  const hasCopy = place.bytes < place.oldBytes || there.toString('latin1', 3, 11) === NTFS_NAME
  const own = { offset: 0, bytes: boot }
  return hasCopy ? [own, { offset: place.bytes - sectorBytes, bytes: boot }] : [own]
}
