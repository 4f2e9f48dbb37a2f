/** The partitions of the board image: what firmware reads, the live system, and the images last, so that they can grow. */
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import { IMAGES_SECTORS } from '#build/exfat/images.ts'
import {
  BACKUP_SECTORS,
  PARTITION_TYPES,
  renderProtective,
  renderTable,
  SECTOR_BYTES,
  type TablePiece,
} from '#build/gpt/table.ts'

const MIB = 2 ** 20 / SECTOR_BYTES
/** Partitions begin at whole erase blocks of cards. */
const ALIGNMENT = 4 * MIB
/** Kernel, initrd, device trees and boot loaders, with room for files of a person. */
const FIRMWARE_SECTORS: number = 128 * MIB
/** What ext4 requires beside the files: bitmaps, tables and a backup of both. */
const EXT4_SECTORS = 2 * MIB

/** A range in sectors of 512 bytes. */
interface Span {
  readonly first: number
  readonly sectors: number
}

interface BoardLayout {
  readonly sectors: number
  readonly firmware: Span
  readonly live: Span
  readonly images: Span
  readonly pieces: readonly TablePiece[]
}

interface BoardPlan {
  /** Identifiers are derived from it. */
  readonly id: string
  readonly squashfsBytes: number
}

/**
 * Plans the partitions in sectors of 512 bytes, and a GUID partition table alone: Windows would not
 * see the images partition beside a hybrid one.
 */
export function planBoard({ id, squashfsBytes }: BoardPlan): BoardLayout {
  const liveSectors = alignUp(Math.ceil(squashfsBytes / SECTOR_BYTES) + EXT4_SECTORS, MIB)
  const firmware = { first: ALIGNMENT, sectors: FIRMWARE_SECTORS }
  const live = { first: alignUp(endOf(firmware), ALIGNMENT), sectors: liveSectors }
  const images = { first: alignUp(endOf(live), ALIGNMENT), sectors: IMAGES_SECTORS }
  const sectors = alignUp(endOf(images) + BACKUP_SECTORS, MIB)
  const partitions = [
    { ...spanOf(firmware), name: 'FLASHER_FW', type: PARTITION_TYPES.efi },
    { ...spanOf(live), name: 'FLASHER_LIVE', type: PARTITION_TYPES.linux },
    { ...spanOf(images), name: IMAGES_PARTITION.name, type: PARTITION_TYPES.data },
  ]
  const table = renderTable({ id, diskSectors: sectors, partitions })
  const pieces = [{ sector: 0, bytes: renderProtective() }, ...table]
  return { sectors, firmware, live, images, pieces }
}

const endOf = ({ first, sectors }: Span) => first + sectors

const spanOf = (span: Span) => ({ firstSector: span.first, lastSector: endOf(span) - 1 })

const alignUp = (sector: number, to: number) => Math.ceil(sector / to) * to
