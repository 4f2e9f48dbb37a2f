/** Finds the partition that holds images: on the live system's stick, on another one, or Ventoy's. */
import { IMAGES_PARTITION } from '#appliance/contract.ts'

interface BootMedium {
  /** `/dev/sda`; null: booted over the network. */
  readonly disk: string | null
  readonly partition: string | null
  /** Images lie beside an ISO file, as with Ventoy, or in their folder on a stick of files. */
  readonly hasImages: boolean
}

export interface KernelPartition {
  readonly node: string
  readonly disk: string
  readonly number: number
  /** Null: the table has no names. */
  readonly name: string | null
  /** Inside the machine: nobody plugged it in for its images. */
  readonly isFixed: boolean
}

export type WholeDisk = Pick<KernelPartition, 'node' | 'isFixed'>

export interface DiskSurroundings {
  readonly medium: BootMedium
  readonly parts: readonly KernelPartition[]
  /** None that lies on others (LVM, dm, md): those would be held as well. */
  readonly disks: readonly WholeDisk[]
  readonly labels: ReadonlyMap<string, string>
}

export type GrowablePartition = Pick<KernelPartition, 'node' | 'disk' | 'number'>

interface ImagesPartition {
  readonly node: string
  /** Null: only looked at. */
  readonly growable: GrowablePartition | null
}

/** The first one found; Ventoy's own label comes last. */
const LABELS = [IMAGES_PARTITION.label, IMAGES_PARTITION.name, 'Ventoy'] as const

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
 * The stick that we run from first; only its images partition grows. Disks inside the machine must
 * stay unmounted to be written, so that a label counts only on what is plugged in, or on our own
 * disk.
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
