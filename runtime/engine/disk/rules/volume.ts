/** The places of a file system on a flashed disk: a partition, a logical volume, or the whole disk. */
import { indexNodes, type LsblkNode } from './lsblk.ts'

interface Volume {
  /** `/dev/sda2`, `/dev/mapper/vg-root`. */
  readonly node: string
  readonly kind: 'part' | 'lvm' | 'disk'
  readonly sizeBytes: number
  /** Absent: its node. */
  readonly name?: string
}

/** As blkid reads them from the image. */
export interface Contents {
  /** `ext4`, `LVM2_member`, `crypto_LUKS`, `swap`… */
  readonly type: string | null
  readonly uuid: string | null
  readonly label: string | null
  readonly partuuid: string | null
  readonly partlabel: string | null
  /** `gpt`, `dos`. */
  readonly table: string | null
}

export const PHYSICAL_VOLUME = 'LVM2_member'

/** `first`: its first PHYSICAL_BYTES. */
export const isPhysicalVolume = (first: Buffer): boolean =>
  [0, 512, 1024, 1536].some((at) => first.toString('latin1', at, at + 8) === 'LABELONE')
export const PHYSICAL_BYTES = 4096

export type FilledVolume = Volume & { readonly contents: Contents }

export const nameOf = ({ name, node }: Pick<Volume, 'name' | 'node'>): string => name ?? node

/** From `lsblk --json --bytes DISK`, nested or flat; the disk itself where it has no partitions. */
export function listVolumes(nodes: readonly LsblkNode[], disk: string): readonly Volume[] {
  const all = [...indexNodes(nodes).values()].filter(({ path }) => path.startsWith('/dev/'))
  const volumes = all.flatMap(({ path, type, size }): readonly Volume[] =>
    type === 'part' || type === 'lvm'
      ? [{ node: path, kind: type, sizeBytes: readBytes(size) }]
      : [],
  )
  if (volumes.some(({ kind }) => kind === 'part')) return volumes
  const whole = all.find(({ path }) => path === disk) ?? all[0]
  const itself: Volume = { node: disk, kind: 'disk', sizeBytes: readBytes(whole?.size ?? null) }
  // A target may be a partition itself (--allow-partition).
  return [itself, ...volumes]
}

/** `blkid --probe --output export`: lines `KEY=VALUE`, unsafe characters behind a backslash. */
export function parseBlkid(text: string): Contents {
  const pairs = text.split('\n').flatMap((line) => {
    const [, key, value] = /^([A-Z_]+)=(.+)$/.exec(line) ?? []
    return key === undefined || value === undefined
      ? []
      : [[key, value.replaceAll(/\\(.)/g, '$1')] as const]
  })
  const said = new Map(pairs)
  const read = (key: string) => said.get(key) ?? null
  return {
    type: read('TYPE'),
    uuid: read('UUID'),
    label: read('LABEL'),
    partuuid: read('PART_ENTRY_UUID'),
    partlabel: read('PART_ENTRY_NAME'),
    table: read('PTTYPE'),
  }
}

/** Old lsblk prints bytes as text. */
function readBytes(size: string | null): number {
  const bytes = Number(size ?? 0)
  return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : 0
}
