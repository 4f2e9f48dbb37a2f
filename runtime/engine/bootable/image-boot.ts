/** Looks into an image for what firmware starts from it, at the places that its table names. */
import type { ImageFormat } from '#appliance/disk-images.ts'
import {
  EFI_SYSTEM,
  hasDosSignature,
  isBootSector,
  isExtendedType,
  type Partition,
  parsePartitions,
  parseTableSector,
  PROTECTIVE,
  readDosEntries,
  renderGuid,
} from '#engine/disk/rules/partition-tables.ts'
import { FORMATS } from '#engine/image/rules/format.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { type FatFiles, openFat, type ReadAt } from './fat-files.ts'
import { explainMisfit, type ImageBoot } from './rules/boot-facts.ts'
import {
  type EfiProcessor,
  type FirmwareFacts,
  PROCESSORS,
} from '#engine/inventory/rules/firmware-facts.ts'
import { type EfiProgram, parseEfiProgram } from './rules/efi-program.ts'

/** A sentence or more for whoever is at this machine; null: nothing speaks against it. */
export async function describeMisfit(
  source: Source,
  format: ImageFormat,
  firmware: FirmwareFacts,
): Promise<string | null> {
  try {
    const why = explainMisfit(await readImageBoot(source, format), firmware)
    return why === null ? null : `This machine does not start from this image. ${why}`
  } catch (thrown) {
    // What is wrong with the image is said by who reads all of it.
    if (thrown instanceof Fault) return null
    throw thrown
  }
}

export const HEAD_BYTES = 1024 * 1024
/** Where firmware looks on a disk that it does not know (UEFI 2.10, 3.5.1.1). */
const FOLDER = ['EFI', 'BOOT'] as const
/** A kernel with its own initrd in one program is larger than this, and so is what lies. */
const MAX_PROGRAM_BYTES = 128 * 1024 * 1024
/** Of all programs of an image. */
const MAX_PROGRAMS_BYTES = 2 * MAX_PROGRAM_BYTES
const MAX_PARTITIONS = 32
/** No disk is larger. */
const MAX_PLACE = 2 ** 50

/** Null: it can only be read from start to end. Faults of the source, and `image-broken`. */
export async function readImageBoot(
  source: Source,
  format: ImageFormat,
): Promise<ImageBoot | null> {
  const readAt = await openReader(source, format)
  if (readAt === null) return null
  const at = keepBlocks(readAt)
  const head = Buffer.alloc(HEAD_BYTES)
  const bytes = head.subarray(0, await at(head, 0))
  const { places, isWhole } = listBootPlaces(bytes)
  const found = {
    programs: [] as EfiProgram[],
    unread: [] as EfiProcessor[],
    left: MAX_PROGRAMS_BYTES,
  }
  // Without a table, all of it may be one FAT.
  const isDisc = hasDiscMark(bytes)
  const onDisc = isDisc ? await listDiscPlaces(at, bytes) : []
  const offsets = places.map(({ offset }) => offset)
  let hasSystemPartition = places.some(({ isSystem }) => isSystem)
  for (const place of new Set([0, ...offsets, ...onDisc])) {
    const files = await openFat(at, place)
    if (files === null) continue
    hasSystemPartition ||= offsets.includes(place)
    await findPrograms(files, found)
  }
  return {
    bios: hasBootCode(bytes),
    programs: found.programs,
    unread: found.unread,
    hasSystemPartition,
    isSearched: isWhole,
    isDisc,
  }
}

// ECMA-119 with El Torito 1.0. Firmware finds it on disks as well (EDK II, PartitionDxe).
const DISC_SECTOR = 2048
const BOOT_RECORD = 17 * DISC_SECTOR
const DISC_MARK = 'EL TORITO SPECIFICATION'
const FOR_EFI = 0xef
const BOOTABLE = 0x88

export const hasDiscMark = (head: Buffer): boolean =>
  head.toString('latin1', BOOT_RECORD + 7, BOOT_RECORD + 7 + DISC_MARK.length) === DISC_MARK

/** The FATs of its boot catalog that are for UEFI. */
async function listDiscPlaces(at: ReadAt, head: Buffer): Promise<readonly number[]> {
  const catalog = Buffer.alloc(DISC_SECTOR)
  await at(catalog, head.readUInt32LE(BOOT_RECORD + 71) * DISC_SECTOR)
  const places: number[] = []
  let platform = catalog.readUInt8(1)
  for (let place = 32; place < DISC_SECTOR; place += 32) {
    const kind = catalog.readUInt8(place)
    if (kind === 0x90 || kind === 0x91) platform = catalog.readUInt8(place + 1)
    else if (kind === BOOTABLE && platform === FOR_EFI)
      places.push(catalog.readUInt32LE(place + 8) * DISC_SECTOR)
  }
  return places
}

/** Null: it may start nothing. */
function hasBootCode(head: Buffer): boolean | null {
  // What comes before the disk's identity.
  const code = head.subarray(0, 440)
  if (!hasDosSignature(head) || code.every((byte) => byte === 0)) return false
  // Of mkfs.fat, on a disk without a table.
  if (isBootSector(head)) return code.includes('This is not a bootable disk') ? false : null
  const isActive = readDosEntries(head).some(
    ({ type, status }) => type !== PROTECTIVE && status === ACTIVE,
  )
  return isActive || OWN_WAY.some((name) => code.includes(name)) ? true : null
}

const ACTIVE = 0x80
/** Words in the code of boot loaders that ask for no active partition: GRUB, and ISOLINUX on a stick. */
const OWN_WAY = ['GRUB ', 'isolinux.bin'] as const

const EFI_GUID = renderGuid(EFI_SYSTEM)
/** Firmware looks into each FAT of an MBR. */
const FAT_TYPES = ['0xef', '0x0c', '0x0b', '0x0e', '0x06', '0x04', '0x01']

interface BootPlace extends Pick<Partition, 'offset' | 'bytes'> {
  /** By its type; firmware looks into a FAT of any type. */
  readonly isSystem: boolean
}

/** Where firmware may look for programs; `isWhole`: nowhere else. `head`: the image's first MiB. */
export function listBootPlaces(head: Buffer) {
  const sectorBytes = parseTableSector(head)
  const partitions = parsePartitions(head, sectorBytes ?? 512)
  const listed = partitions.ok ? partitions.value : []
  const isBroken = !partitions.ok && partitions.refusal !== 'no-table'
  const entries = hasDosSignature(head) && !isBootSector(head) ? readDosEntries(head) : []
  // Firmware reads a GUID table only behind a protective MBR, and then also its backup.
  const isGuid = entries.some(({ type }) => type === PROTECTIVE)
  const hasLogical = !isGuid && entries.some(({ type }) => isExtendedType(type))
  const near = listed.filter(({ offset }) => offset <= MAX_PLACE).slice(0, MAX_PARTITIONS)
  const places = near.map(({ type, offset, bytes }): BootPlace => {
    const isSystem = type === EFI_GUID || FAT_TYPES.includes(type)
    return { offset, bytes, isSystem }
  })
  const isMatching = isGuid === (sectorBytes !== null)
  const isWhole = isMatching && !isBroken && !hasLogical && near.length === listed.length
  return { places, isWhole }
}

interface FoundPrograms {
  readonly programs: EfiProgram[]
  readonly unread: EfiProcessor[]
  /** Bytes that may still be read. */
  left: number
}

async function findPrograms(files: FatFiles, found: FoundPrograms): Promise<void> {
  for (const processor of PROCESSORS) {
    const file = await files.find([...FOLDER, `BOOT${processor}.EFI`])
    if (file === null || file.isFolder) continue
    const isRead = file.bytes <= Math.min(MAX_PROGRAM_BYTES, found.left)
    if (isRead) found.left -= file.bytes
    const program = isRead ? parseEfiProgram(await files.read(file)) : null
    if (program === null) found.unread.push(processor)
    else if (program.processor === processor) found.programs.push(program)
  }
}

async function openReader(source: Source, format: ImageFormat): Promise<ReadAt | null> {
  const { readAt } = source
  if (readAt === null) return null
  switch (FORMATS[format].entered) {
    case 'anywhere':
      return readAt
    case 'by-tables':
      return await (await import('#engine/image/qcow2-blocks.ts')).openQcow2Reader(source)
    case 'at-frames': {
      const { openFrameReader } = await import('#engine/image/zstd-decoder.ts')
      return await openFrameReader({ ...source, readAt })
    }
    case 'at-its-start':
      return null
  }
}

const BLOCK_BYTES = 256 * 1024
const MAX_BLOCKS = 32
/** Of an image, 1 GiB: one whose clusters lie in disorder costs a block for each. */
const MAX_READS = 4096

/** Many small questions about bytes that lie together cost one read. Ends as an image does, after `MAX_READS`. */
function keepBlocks(readAt: ReadAt): ReadAt {
  const blocks = new Map<number, Buffer>()
  let reads = 0
  async function blockAt(index: number): Promise<Buffer> {
    const found = blocks.get(index)
    if (found !== undefined) return found
    reads += 1
    if (reads > MAX_READS) return Buffer.alloc(0)
    const into = Buffer.alloc(BLOCK_BYTES)
    const block = into.subarray(0, await readAt(into, index * BLOCK_BYTES))
    const [oldest] = blocks.keys()
    if (blocks.size >= MAX_BLOCKS && oldest !== undefined) blocks.delete(oldest)
    blocks.set(index, block)
    return block
  }
  return async (into, from) => {
    let at = 0
    while (at < into.length) {
      const index = Math.floor((from + at) / BLOCK_BYTES)
      const block = await blockAt(index)
      const copied = block.subarray(from + at - index * BLOCK_BYTES).copy(into, at)
      if (copied === 0) break
      at += copied
    }
    return at
  }
}
