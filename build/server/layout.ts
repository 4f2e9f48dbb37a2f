/** The partitions of the server appliance: two slots of a fixed size, and the state last, so that it can grow. */
import type { Arch } from '#appliance/appliance.ts'
import { SERVER_PARTITIONS } from '#appliance/server.ts'
import {
  BACKUP_SECTORS,
  PARTITION_TYPES,
  renderTable,
  SECTOR_BYTES,
  type TablePiece,
} from '#build/gpt/table.ts'

const MIB = 2 ** 20 / SECTOR_BYTES
/** Fixed for all releases: an update fits, or the disk has to be written anew. */
export const SLOT_SECTORS: number = 640 * MIB
/** The partition is as small as it may stay where nobody enlarges the disk. */
const STATE_SECTORS = 320 * MIB

/** What differs between processors; in sectors. */
interface DiskShape {
  /** Where the first partition begins; on cards at a whole erase block. */
  readonly start: number
  /** GRUB for BIOS, where there is one. */
  readonly bios: number
  /** Kernels and initrds of both versions, and of a third while it is fetched. */
  readonly efi: number
  readonly root: (typeof PARTITION_TYPES)['rootX86' | 'rootArm64']
}

const SHAPES: Readonly<Record<Arch, DiskShape>> = {
  x86_64: { start: MIB, bios: MIB, efi: 160 * MIB, root: PARTITION_TYPES.rootX86 },
  // The kernel is not compressed: GRUB verifies the file as it is. The EFI partition is the first one, for a
  // Raspberry Pi reads its firmware there.
  arm64: { start: 4 * MIB, bios: 0, efi: 256 * MIB, root: PARTITION_TYPES.rootArm64 },
}

/** A range in sectors of 512 bytes. */
interface Span {
  readonly first: number
  readonly sectors: number
}

export interface ServerLayout {
  readonly sectors: number
  /** Null where there is no GRUB for BIOS. */
  readonly bios: Span | null
  readonly efi: Span
  readonly slot: Span
  readonly pieces: readonly TablePiece[]
}

/**
 * Plans the disk in sectors of 512 bytes; `version` is in the first slot, and the second one is
 * free.
 */
export function planServerDisk(version: string, arch: Arch): ServerLayout {
  const shape = SHAPES[arch]
  const names = SERVER_PARTITIONS
  const bios = { first: shape.start, sectors: shape.bios }
  const efi = behind(bios, shape.efi)
  const slot = behind(efi, SLOT_SECTORS)
  const empty = behind(slot, SLOT_SECTORS)
  const state = behind(empty, STATE_SECTORS)
  const sectors = Math.ceil((endOf(state) + BACKUP_SECTORS) / MIB) * MIB
  const partitions = [
    { span: bios, name: names.bios, type: PARTITION_TYPES.bios },
    { span: efi, name: names.efi, type: PARTITION_TYPES.efi },
    { span: slot, name: `${names.slot}${version}`, type: shape.root },
    { span: empty, name: names.empty, type: shape.root },
    { span: state, name: names.state, type: PARTITION_TYPES.linux },
  ]
    .filter(({ span }) => span.sectors > 0)
    .map(({ span, ...rest }) => ({
      ...rest,
      firstSector: span.first,
      lastSector: endOf(span) - 1,
    }))
  return {
    sectors,
    bios: bios.sectors > 0 ? bios : null,
    efi,
    slot,
    pieces: renderTable({ id: `flasher-server ${version}`, diskSectors: sectors, partitions }),
  }
}

const endOf = ({ first, sectors }: Span) => first + sectors

const behind = (span: Span, sectors: number): Span => ({ first: endOf(span), sectors })
