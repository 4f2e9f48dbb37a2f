/** A GUID partition table (UEFI specification 2.10, 5.3), rendered whole. */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

export const SECTOR_BYTES = 512
const HEADER_BYTES = 92
const ENTRY_BYTES = 128
/** As many as fit before sector 64, where the first partition of a hybrid image begins. */
const ENTRIES = 248
const ENTRY_SECTORS = (ENTRIES * ENTRY_BYTES) / SECTOR_BYTES
/** Header and entries, at the end of the disk; at its start the boot sector precedes them. */
export const BACKUP_SECTORS: number = ENTRY_SECTORS + 1

export const PARTITION_TYPES = {
  /** Windows assigns no drive letter and does not offer to format it. */
  linux: '0fc63daf-8483-4772-8e79-3d69d8477de4',
  efi: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b',
  /** What Windows, macOS and Linux all mount. */
  data: 'ebd0a0a2-b9e5-4433-87c0-68b6b72699c7',
  /** Holds the part of GRUB for BIOS that does not fit before the first partition. */
  bios: '21686148-6449-6e6f-744e-656564454649',
  /** Roots of a system by its processor: systemd-sysupdate knows the slots by them. */
  rootX86: '4f68bce3-e8cd-4db1-96e7-fbcaf984b709',
  rootArm64: 'b921b045-1df0-41c3-af44-4c6f280d3fae',
} as const

interface PartitionSpan {
  readonly firstSector: number
  readonly lastSector: number
}

interface Partition extends PartitionSpan {
  readonly type: (typeof PARTITION_TYPES)[keyof typeof PARTITION_TYPES]
  /** The name has at most 36 characters. */
  readonly name: string
}

interface TablePlan {
  /** GUIDs are derived from it, so the same medium has the same ones. */
  readonly id: string
  readonly diskSectors: number
  readonly partitions: readonly Partition[]
}

/** Bytes, and the sector where they begin. */
export interface TablePiece {
  readonly sector: number
  readonly bytes: Buffer
}

/**
 * Renders the table with its backup: header and entries behind the first sector, and at the end of
 * the disk.
 */
export function renderTable({ id, diskSectors, partitions }: TablePlan): readonly TablePiece[] {
  const last = diskSectors - 1
  const entries = Buffer.alloc(ENTRY_SECTORS * SECTOR_BYTES)
  for (const [at, partition] of partitions.entries()) {
    renderEntry(id, partition).copy(entries, at * ENTRY_BYTES)
  }
  const rest = { disk: makeGuid(`${id} disk`), entries, diskSectors }
  return [
    { sector: 1, bytes: renderHeader({ ...rest, own: 1, other: last, entriesAt: 2 }) },
    { sector: 2, bytes: entries },
    { sector: last - ENTRY_SECTORS, bytes: entries },
    {
      sector: last,
      bytes: renderHeader({ ...rest, own: last, other: 1, entriesAt: last - ENTRY_SECTORS }),
    },
  ]
}

/**
 * Renders the boot sector before a table: its one entry covers a disk of any size, because images
 * are written to larger ones.
 */
export function renderProtective(): Buffer {
  const sector = Buffer.alloc(SECTOR_BYTES)
  sector.set([0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff], 446)
  sector.writeUInt32LE(1, 446 + 8)
  sector.writeUInt32LE(0xffffffff, 446 + 12)
  sector.writeUInt16LE(0xaa55, 510)
  return sector
}

/** Lists where the partitions of a table begin and end; `head` is the disk's first sectors. */
export function parseSpans(head: Buffer): readonly PartitionSpan[] {
  const start = 2 * SECTOR_BYTES
  return Array.from({ length: ENTRIES }, (_, at) => {
    const entry = head.subarray(start + at * ENTRY_BYTES, start + (at + 1) * ENTRY_BYTES)
    return {
      firstSector: Number(entry.readBigUInt64LE(32)),
      lastSector: Number(entry.readBigUInt64LE(40)),
    }
  }).filter(({ lastSector }) => lastSector > 0)
}

interface Header {
  readonly disk: Buffer
  readonly entries: Buffer
  readonly diskSectors: number
  readonly own: number
  readonly other: number
  readonly entriesAt: number
}

function renderHeader({ disk, entries, diskSectors, own, other, entriesAt }: Header): Buffer {
  const header = Buffer.alloc(SECTOR_BYTES)
  header.write('EFI PART', 'latin1')
  header.writeUInt32LE(0x00010000, 8)
  header.writeUInt32LE(HEADER_BYTES, 12)
  header.writeBigUInt64LE(BigInt(own), 24)
  header.writeBigUInt64LE(BigInt(other), 32)
  header.writeBigUInt64LE(BigInt(2 + ENTRY_SECTORS), 40)
  header.writeBigUInt64LE(BigInt(diskSectors - 2 - ENTRY_SECTORS), 48)
  disk.copy(header, 56)
  header.writeBigUInt64LE(BigInt(entriesAt), 72)
  header.writeUInt32LE(ENTRIES, 80)
  header.writeUInt32LE(ENTRY_BYTES, 84)
  header.writeUInt32LE(crc32(entries), 88)
  header.writeUInt32LE(crc32(header.subarray(0, HEADER_BYTES)), 16)
  return header
}

function renderEntry(id: string, { type, name, firstSector, lastSector }: Partition): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES)
  swapGuid(Buffer.from(type.replaceAll('-', ''), 'hex')).copy(entry, 0)
  makeGuid(`${id} ${name}`).copy(entry, 16)
  entry.writeBigUInt64LE(BigInt(firstSector), 32)
  entry.writeBigUInt64LE(BigInt(lastSector), 40)
  entry.write(name, 56, 'utf16le')
  return entry
}

/** Derives a version 4 GUID from a text, and renders it as people write it. */
export const renderGuid = (text: string): string =>
  deriveGuid(text)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

/** The same in the byte order of the disk. */
const makeGuid = (text: string): Buffer => swapGuid(deriveGuid(text))

function deriveGuid(text: string): Buffer {
  const guid = createHash('sha256').update(text).digest().subarray(0, 16)
  guid.writeUInt8(((guid[6] ?? 0) & 0x0f) | 0x40, 6)
  guid.writeUInt8(((guid[8] ?? 0) & 0x3f) | 0x80, 8)
  return guid
}

/** The first three fields are little-endian numbers. */
function swapGuid(guid: Buffer): Buffer {
  guid.subarray(0, 4).reverse()
  guid.subarray(4, 6).reverse()
  guid.subarray(6, 8).reverse()
  return guid
}
