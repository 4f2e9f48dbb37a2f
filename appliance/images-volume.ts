/** How the images partition is laid out so that it can grow where it lies; builder and growth agree here. */

// The FAT and the cluster that holds the allocation bitmap are long enough for half a tebibyte from the start.
export const IMAGES_VOLUME = {
  sectorBytes: 512,
  clusterBytes: 256 * 1024,
  /** As many as one cluster of bitmap can tell of: 512 GiB. */
  mostClusters: 256 * 1024 * 8,
  /** In sectors of the volume, each at a whole MiB or cluster. */
  fatStart: 2048,
  fatSectors: 16_385,
  heapStart: 18_944,
  /** Clusters are counted from 2. */
  bitmapCluster: 2,
  upcaseCluster: 3,
  rootCluster: 4,
} as const

/** Main and backup boot region: twelve sectors each, the last one full of the checksum of the others. */
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

/** How many clusters a partition of so many sectors has room for. */
export const countClusters = (sectors: number): number =>
  Math.min(
    IMAGES_VOLUME.mostClusters,
    Math.floor((sectors - IMAGES_VOLUME.heapStart) / SECTORS_PER_CLUSTER),
  )

/** The volume's first sector that belongs to a cluster. */
export const sectorOf = (cluster: number): number =>
  IMAGES_VOLUME.heapStart + (cluster - 2) * SECTORS_PER_CLUSTER

/** One step of the sum that exFAT takes of boot regions, up-case tables and, in 16 bits, of names. */
export const addToChecksum = (sum: number, byte: number): number =>
  (((sum << 31) | (sum >>> 1)) + byte) >>> 0

/** Flags and fill level of the volume change from day to day, and do not count. */
const UNCOUNTED: ReadonlySet<number> = new Set([
  BOOT_AT.flags,
  BOOT_AT.flags + 1,
  BOOT_AT.percentInUse,
])

export const CHECKSUM_OFFSET: number = BOOT_REGION.checksumSector * IMAGES_VOLUME.sectorBytes

/** The checksum of a boot region, of whose bytes those before the checksum's sector are looked at. */
export const sumBootRegion = (region: Uint8Array): number =>
  sumBootBytes(region, { sum: 0, from: 0, to: CHECKSUM_OFFSET })

interface PartialSum {
  /** Of the bytes before `from`. */
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
