/** The layout of the images partition, shared by the builder and by the program that grows it in place. */

// The FAT and the allocation bitmap are large enough for 512 GiB from the start, so that growing moves nothing.
export const IMAGES_VOLUME = {
  sectorBytes: 512,
  clusterBytes: 256 * 1024,
  /** As many as a bitmap of one cluster can hold: 512 GiB. */
  mostClusters: 256 * 1024 * 8,
  /** These three are in sectors of the volume; each part begins at a whole MiB or cluster. */
  fatStart: 2048,
  fatSectors: 16_385,
  heapStart: 18_944,
  /** Clusters are numbered from 2. */
  bitmapCluster: 2,
  upcaseCluster: 3,
  rootCluster: 4,
} as const

/** Main and backup boot region: twelve sectors each, the last one filled with the checksum of the others. */
export const BOOT_REGION = { sectors: 12, checksumSector: 11 } as const

/** Offsets in an exFAT boot sector (exFAT specification, 3.1). */
export const BOOT_AT = {
  name: 3,
  volumeLength: 72,
  fatOffset: 80,
  fatLength: 84,
  heapOffset: 88,
  clusterCount: 92,
  rootCluster: 96,
  serial: 100,
  revision: 104,
  flags: 106,
  sectorShift: 108,
  clusterShift: 109,
  fats: 110,
  drive: 111,
  percentInUse: 112,
  bootCode: 120,
  signature: 510,
} as const

export const SECTORS_PER_CLUSTER: number = IMAGES_VOLUME.clusterBytes / IMAGES_VOLUME.sectorBytes

/** The number of clusters in a partition of `sectors`. */
export const countClusters = (sectors: number): number =>
  Math.min(
    IMAGES_VOLUME.mostClusters,
    Math.floor((sectors - IMAGES_VOLUME.heapStart) / SECTORS_PER_CLUSTER),
  )

/** The volume's first sector that belongs to a cluster. */
export const sectorOf = (cluster: number): number =>
  IMAGES_VOLUME.heapStart + (cluster - 2) * SECTORS_PER_CLUSTER

/** One step of exFAT's checksum of boot regions and up-case tables. */
export const addToChecksum = (sum: number, byte: number): number =>
  (((sum << 31) | (sum >>> 1)) + byte) >>> 0

/** Flags and fill level change with use, and are skipped. */
const UNCOUNTED: ReadonlySet<number> = new Set([
  BOOT_AT.flags,
  BOOT_AT.flags + 1,
  BOOT_AT.percentInUse,
])

export const CHECKSUM_OFFSET: number = BOOT_REGION.checksumSector * IMAGES_VOLUME.sectorBytes

/** The checksum of a boot region's sectors, without the one that holds it. */
export const sumBootRegion = (region: Uint8Array): number =>
  sumBootBytes(region, { sum: 0, from: 0, to: CHECKSUM_OFFSET })

interface PartialSum {
  /** The sum of the bytes before `from`. */
  readonly sum: number
  readonly from: number
  readonly to: number
}

/** The sum of a boot region's bytes before `to`. */
export function sumBootBytes(region: Uint8Array, { sum, from, to }: PartialSum): number {
  let next = sum
  for (let at = from; at < to; at += 1) {
    if (!UNCOUNTED.has(at)) next = addToChecksum(next, region[at] ?? 0)
  }
  return next
}
