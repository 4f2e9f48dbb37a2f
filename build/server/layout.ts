/** The partitions of the server appliance: two slots of a fixed size, and the state last, so that it can grow. */
import { SERVER_PARTITIONS } from '../../appliance/server.ts'
import {
  BACKUP_SECTORS,
  PARTITION_TYPES,
  renderTable,
  SECTOR_BYTES,
  type TablePiece,
} from '../gpt/table.ts'

const MIB = 2 ** 20 / SECTOR_BYTES
/** Kernels and initrds of both versions, and of a third while it is fetched. */
export const EFI_SECTORS: number = 160 * MIB
/** Fixed for all releases: an update fits, or the disk has to be written anew. */
export const SLOT_SECTORS: number = 640 * MIB
/** As small as it may stay where nobody enlarges the disk. */
const STATE_SECTORS = 320 * MIB

interface ServerLayout {
  /** All in sectors of 512 bytes. */
  readonly sectors: number
  readonly bios: number
  readonly efi: number
  readonly slot: number
  readonly pieces: readonly TablePiece[]
}

/** `version` is in the first slot; the second one is free. */
export function planServerDisk(version: string): ServerLayout {
  const sizes = [MIB, EFI_SECTORS, SLOT_SECTORS, SLOT_SECTORS, STATE_SECTORS]
  const starts = sizes.map((_, at) => sizes.slice(0, at).reduce((sum, size) => sum + size, MIB))
  const spanOf = (at: number) => {
    const [first = 0, size = 0] = [starts[at], sizes[at]]
    return { firstSector: first, lastSector: first + size - 1 }
  }
  const sectors = Math.ceil((spanOf(4).lastSector + 1 + BACKUP_SECTORS) / MIB) * MIB
  const { bios, efi, slot, empty, state } = SERVER_PARTITIONS
  const partitions = [
    { ...spanOf(0), name: bios, type: PARTITION_TYPES.bios },
    { ...spanOf(1), name: efi, type: PARTITION_TYPES.efi },
    { ...spanOf(2), name: `${slot}${version}`, type: PARTITION_TYPES.rootX86 },
    { ...spanOf(3), name: empty, type: PARTITION_TYPES.rootX86 },
    { ...spanOf(4), name: state, type: PARTITION_TYPES.linux },
  ]
  return {
    sectors,
    bios: spanOf(0).firstSector,
    efi: spanOf(1).firstSector,
    slot: spanOf(2).firstSector,
    pieces: renderTable({ id: `flasher-server ${version}`, diskSectors: sectors, partitions }),
  }
}
