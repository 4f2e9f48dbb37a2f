/** Finds the partition that holds images: on the live system's stick, on another one, or Ventoy's. */
import { IMAGES_PARTITION } from '../../../../appliance/contract.ts'

/** What the boot system wrote down of the medium that it found the root on. */
interface BootMedium {
  /** `/dev/sda`; null after a boot over the network. */
  readonly disk: string | null
  /** `/dev/sda1` */
  readonly partition: string | null
  /** Whether images lie on that partition: beside an ISO file, as with Ventoy, or in their folder on a stick of files. */
  readonly hasImages: boolean
}

/** A partition as the kernel shows it. */
export interface KernelPartition {
  /** `/dev/sda3` */
  readonly node: string
  /** `/dev/sda` */
  readonly disk: string
  readonly number: number
  /** The name in a GUID partition table; null where the table has no names. */
  readonly name: string | null
  /** On a disk inside of the machine, which nobody plugged in for its images. */
  readonly isFixed: boolean
}

/** A disk as a whole: a file system may lie on it without a partition table. */
export type WholeDisk = Pick<KernelPartition, 'node' | 'isFixed'>

export interface DiskSurroundings {
  readonly medium: BootMedium
  readonly parts: readonly KernelPartition[]
  /** None that lies on others (LVM, dm, md): those would be held as well. */
  readonly disks: readonly WholeDisk[]
  readonly labels: ReadonlyMap<string, string>
}

/** A partition of ours, which grows. */
export type GrowablePartition = Pick<KernelPartition, 'node' | 'disk' | 'number'>

interface ImagesPartition {
  readonly node: string
  /** Null for one that is only looked at. */
  readonly growable: GrowablePartition | null
}

/** File systems that are looked at, the first one found; Ventoy's own label comes last. */
const LABELS = [IMAGES_PARTITION.label, IMAGES_PARTITION.name, 'Ventoy'] as const

/** `KEY=value` lines; what is missing is null. */
export function parseBootMedium(text: string): BootMedium {
  const valueOf = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1] ?? ''
  const node = (key: string) => {
    const value = valueOf(key)
    return /^\/dev\/[\w-]+$/.test(value) ? value : null
  }
  const hasImages = valueOf('medium_file') !== '' || valueOf('images_beside') === 'yes'
  return { disk: node('medium_disk'), partition: node('medium'), hasImages }
}

/**
 * Null when there is none. The stick that we run from comes first; only its images partition grows.
 * Another disk inside of the machine is there to be written, which it could not be while anything
 * on it is mounted: so a label counts only on what is known to be plugged in, or is the disk that
 * we run from.
 */
export function chooseImagesPartition(around: DiskSurroundings): ImagesPartition | null {
  const { medium, parts, disks, labels } = around
  const named = parts.filter(({ name }) => name === IMAGES_PARTITION.name)
  const own = named.find(({ disk }) => disk === medium.disk)
  if (own !== undefined) return { node: own.node, growable: own }
  const beside = medium.hasImages ? medium.partition : null
  const free = [
    ...parts.filter(({ isFixed }) => !isFixed),
    ...disks.filter(({ node, isFixed }) => !isFixed || node === medium.disk),
  ]
  const known = new Set(free.map(({ node }) => node))
  const wanted = [...named.map(({ node }) => node), ...LABELS.map((label) => labels.get(label))]
  const node = beside ?? wanted.find((each) => each !== undefined && known.has(each))
  return node === undefined ? null : { node, growable: null }
}
