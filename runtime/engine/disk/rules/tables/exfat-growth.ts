/** Plans the writes that grow the exFAT volume to fill its partition; files and their clusters stay in place. */
import {
  BOOT_AT,
  BOOT_REGION,
  CHECKSUM_OFFSET,
  countClusters,
  IMAGES_VOLUME,
  sectorOf,
  SECTORS_PER_CLUSTER,
  sumBootRegion,
} from '#appliance/images-volume.ts'
import type { DiskWrite } from './planned-write.ts'
import { sumTo } from './exfat-checksum.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export interface VolumeFacts {
  /** The volume's first `BOOT_BYTES`. */
  readonly boot: Buffer
  /** The sector at `ROOT_OFFSET`. */
  readonly root: Buffer
  /** Sectors of the partition. */
  readonly sectors: number
}

/** `not-ours`: formatted by somebody else, and used as it is. */
export type VolumeRefusal = 'not-ours' | 'partition-too-small'

interface VolumeGrowth {
  /** Room for files before the growth; `toBytes`: after it. */
  readonly fromBytes: number
  readonly toBytes: number
  readonly writes: readonly DiskWrite[]
}

const { sectorBytes, clusterBytes, heapStart, mostClusters, bitmapCluster, rootCluster } =
  IMAGES_VOLUME
const REGION_BYTES = BOOT_REGION.sectors * sectorBytes

export const BOOT_BYTES: number = 2 * REGION_BYTES
export const ROOT_OFFSET: number = sectorOf(rootCluster) * sectorBytes

/**
 * After any number of these writes the volume is whole, and planning again gives the rest. The
 * bitmap may be longer than the volume, not shorter: it comes first. A damaged main boot region is
 * restored from the backup: the backup comes before it.
 */
export function planVolumeGrowth({
  boot,
  root,
  sectors,
}: VolumeFacts): Result<VolumeGrowth, VolumeRefusal> {
  const main = boot.subarray(0, REGION_BYTES)
  const backup = boot.subarray(REGION_BYTES, BOOT_BYTES)
  const region = [main, backup].find(isSound)
  const bitmap = findBitmap(root)
  if (region === undefined || !isLaidOut(region) || bitmap === null) return refuse('not-ours')
  const fromClusters = region.readUInt32LE(BOOT_AT.clusterCount)
  const toClusters = countClusters(sectors)
  if (toClusters < fromClusters) return refuse('partition-too-small')
  const grown = growRegion(region, toClusters, sectors)
  return accept({
    fromBytes: fromClusters * clusterBytes,
    toBytes: toClusters * clusterBytes,
    writes: [
      ...planBitmap(root, bitmap, Math.ceil(toClusters / 8)),
      ...planRegion('backup boot sector', backup, grown, REGION_BYTES),
      ...planRegion('boot sector', main, grown, 0),
    ],
  })
}

const isSound = (region: Buffer) =>
  region.length === REGION_BYTES &&
  region.toString('latin1', BOOT_AT.name, BOOT_AT.name + 8) === 'EXFAT   ' &&
  region.readUInt32LE(CHECKSUM_OFFSET) === sumBootRegion(region)

const isLaidOut = (region: Buffer) =>
  region[BOOT_AT.sectorShift] === Math.log2(sectorBytes) &&
  region[BOOT_AT.clusterShift] === Math.log2(SECTORS_PER_CLUSTER) &&
  region[BOOT_AT.fats] === 1 &&
  region.readUInt32LE(BOOT_AT.fatOffset) === IMAGES_VOLUME.fatStart &&
  region.readUInt32LE(BOOT_AT.fatLength) === IMAGES_VOLUME.fatSectors &&
  region.readUInt32LE(BOOT_AT.heapOffset) === heapStart &&
  region.readUInt32LE(BOOT_AT.rootCluster) === rootCluster &&
  region.readUInt32LE(BOOT_AT.clusterCount) <= mostClusters

function findBitmap(root: Buffer): number | null {
  for (let at = 0; at + 32 <= root.length; at += 32) {
    if (root[at] === 0x81 && root.readUInt32LE(at + 20) === bitmapCluster) return at
  }
  return null
}

function planBitmap(root: Buffer, entry: number, bytes: number): readonly DiskWrite[] {
  if (root.readBigUInt64LE(entry + 24) >= BigInt(bytes)) return []
  const longer = Buffer.from(root)
  longer.writeBigUInt64LE(BigInt(bytes), entry + 24)
  return [{ what: 'length of the bitmap', offset: ROOT_OFFSET, bytes: longer }]
}

/** The first sector alone where only that differs: disks write a sector whole or not at all. */
function planRegion(
  what: string,
  now: Buffer,
  grown: Buffer,
  offset: number,
): readonly DiskWrite[] {
  if (now.equals(grown)) return []
  const isFirstOnly = now.subarray(sectorBytes).equals(grown.subarray(sectorBytes))
  return [{ what, offset, bytes: isFirstOnly ? grown.subarray(0, sectorBytes) : grown }]
}

/** Keeps the checksum: unused boot code makes up for the change. */
function growRegion(region: Buffer, clusters: number, sectors: number): Buffer {
  if (region.readUInt32LE(BOOT_AT.clusterCount) === clusters) return region
  const grown = Buffer.from(region)
  const end = clusters === mostClusters ? heapStart + clusters * SECTORS_PER_CLUSTER : sectors
  grown.writeUInt32LE(clusters, BOOT_AT.clusterCount)
  grown.writeBigUInt64LE(BigInt(end), BOOT_AT.volumeLength)
  grown.writeUInt8(0xff, BOOT_AT.percentInUse)
  return sumTo(grown, sumBootRegion(region))
}
