/** The images partition as we build it: a small exFAT volume that can grow in place. */
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
import {
  renderBitmapEntry,
  renderFileEntries,
  renderLabel,
  renderUpcaseEntry,
} from './directory.ts'
import { renderUpcase, sumUpcase } from './upcase.ts'

export interface VolumeFile {
  readonly name: string
  readonly content: Buffer
}

interface VolumePlan {
  /** The size in sectors of 512 bytes. */
  readonly sectors: number
  /** The label has at most 11 characters. */
  readonly label: string
  readonly serial: number
  readonly time: Date
  readonly files: readonly VolumeFile[]
}

/** Bytes of the volume, at an offset in it; all else is zero. */
interface VolumePiece {
  readonly offset: number
  readonly bytes: Buffer
}

const { sectorBytes, clusterBytes, bitmapCluster, upcaseCluster, rootCluster } = IMAGES_VOLUME
const END_OF_CHAIN = 0xffffffff
const MEDIA_TYPE = 0xfffffff8
const HALT = 0xf4

/**
 * Renders a volume as pieces of bytes; the same plan gives the same ones. Throws when the files do
 * not fit.
 */
export function renderVolume({
  sectors,
  label,
  serial,
  time,
  files,
}: VolumePlan): readonly VolumePiece[] {
  const clusters = countClusters(sectors)
  const table = renderUpcase()
  const placed = placeFiles(files)
  const used = placed.reduce((last, { end }) => Math.max(last, end), rootCluster + 1) - 2
  const root = Buffer.concat([
    renderLabel(label),
    renderBitmapEntry(bitmapCluster, Math.ceil(clusters / 8)),
    renderUpcaseEntry(upcaseCluster, table.length, sumUpcase(table)),
    ...placed.map(({ file, firstCluster }) =>
      renderFileEntries({ name: file.name, bytes: file.content.length, firstCluster, time }),
    ),
  ])
  if (used > clusters || root.length > clusterBytes) {
    throw new Error(`the files need ${used} clusters, the volume has ${clusters}`)
  }
  const region = renderBootRegion(sectors, serial)
  return [
    { offset: 0, bytes: region },
    { offset: region.length, bytes: region },
    { offset: IMAGES_VOLUME.fatStart * sectorBytes, bytes: renderFat() },
    { offset: offsetOf(bitmapCluster), bytes: renderBitmap(used) },
    { offset: offsetOf(upcaseCluster), bytes: table },
    { offset: offsetOf(rootCluster), bytes: root },
    ...placed.map(({ file, firstCluster }) => ({
      offset: offsetOf(firstCluster),
      bytes: file.content,
    })),
  ].filter(({ bytes }) => bytes.length > 0)
}

const offsetOf = (cluster: number) => (cluster === 0 ? 0 : sectorOf(cluster) * sectorBytes)

/** One after the other, each in clusters of its own; `end` is the first cluster after it. */
function placeFiles(files: readonly VolumeFile[]) {
  let free = rootCluster + 1
  return files.map((file) => {
    const firstCluster = file.content.length === 0 ? 0 : free
    free += Math.ceil(file.content.length / clusterBytes)
    return { file, firstCluster, end: free }
  })
}

function renderBootRegion(sectors: number, serial: number): Buffer {
  const region = Buffer.alloc(BOOT_REGION.sectors * sectorBytes)
  region.set([0xeb, 0x76, 0x90])
  region.write('EXFAT   ', BOOT_AT.name, 'latin1')
  region.writeBigUInt64LE(BigInt(sectors), BOOT_AT.volumeLength)
  region.writeUInt32LE(IMAGES_VOLUME.fatStart, BOOT_AT.fatOffset)
  region.writeUInt32LE(IMAGES_VOLUME.fatSectors, BOOT_AT.fatLength)
  region.writeUInt32LE(IMAGES_VOLUME.heapStart, BOOT_AT.heapOffset)
  region.writeUInt32LE(countClusters(sectors), BOOT_AT.clusterCount)
  region.writeUInt32LE(rootCluster, BOOT_AT.rootCluster)
  region.writeUInt32LE(serial >>> 0, BOOT_AT.serial)
  region.writeUInt16LE(0x0100, BOOT_AT.revision)
  region.writeUInt8(Math.log2(sectorBytes), BOOT_AT.sectorShift)
  region.writeUInt8(Math.log2(SECTORS_PER_CLUSTER), BOOT_AT.clusterShift)
  region.writeUInt8(1, BOOT_AT.fats)
  region.writeUInt8(0x80, BOOT_AT.drive)
  // 0xff means unknown: it changes with each file, and nothing depends on it.
  region.writeUInt8(0xff, BOOT_AT.percentInUse)
  region.fill(HALT, BOOT_AT.bootCode, BOOT_AT.signature)
  region.writeUInt16LE(0xaa55, BOOT_AT.signature)
  // Eight extended boot sectors, empty except for their signature.
  for (let sector = 1; sector <= 8; sector += 1) {
    region.writeUInt32LE(0xaa550000, (sector + 1) * sectorBytes - 4)
  }
  const sum = sumBootRegion(region)
  for (let at = CHECKSUM_OFFSET; at < region.length; at += 4) {
    region.writeUInt32LE(sum, at)
  }
  return region
}

/** Files need no chains: their clusters follow each other. */
function renderFat(): Buffer {
  const fat = Buffer.alloc(sectorBytes)
  fat.writeUInt32LE(MEDIA_TYPE, 0)
  fat.writeUInt32LE(END_OF_CHAIN, 4)
  for (const cluster of [bitmapCluster, upcaseCluster, rootCluster]) {
    fat.writeUInt32LE(END_OF_CHAIN, cluster * 4)
  }
  return fat
}

function renderBitmap(used: number): Buffer {
  const bitmap = Buffer.alloc(Math.ceil(used / 8))
  for (let bit = 0; bit < used; bit += 1) {
    bitmap.writeUInt8((bitmap[bit >> 3] ?? 0) | (1 << (bit & 7)), bit >> 3)
  }
  return bitmap
}
