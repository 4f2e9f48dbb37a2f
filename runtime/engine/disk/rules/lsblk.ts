/** Parses lsblk's JSON into a tree of block devices, and the volumes on them; trusts none of it. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { listUsers, type TargetDevice } from './disk.ts'

/** A child with two parents (RAID, LVM, multipath) appears below each of them. */
export interface LsblkNode {
  readonly name: string
  /** Differs for device-mapper: `dm-0`. */
  readonly kname: string
  readonly path: string
  readonly type: string
  /** For people without `-b`, bytes with it. */
  readonly size: string | null
  readonly fstype: string | null
  readonly label: string | null
  readonly partlabel: string | null
  readonly vendor: string | null
  readonly model: string | null
  readonly serial: string | null
  readonly wwn: string | null
  readonly tran: string | null
  readonly removable: boolean
  readonly readonly: boolean
  readonly mountpoints: readonly string[]
  readonly children: readonly LsblkNode[]
}

/**
 * Part of a row of `flasher list disks --json`, spelled as in the specification. `size` is for
 * people (`500G`); `mountpoints` include everything below the disk.
 */
type ListedNode = Pick<
  LsblkNode,
  | 'path'
  | 'size'
  | 'type'
  | 'vendor'
  | 'model'
  | 'serial'
  | 'tran'
  | 'removable'
  | 'readonly'
  | 'mountpoints'
>

export interface DiskRow extends ListedNode {
  readonly size_bytes: number
  /** `/boot`, `swap`, `md0 (RAID 1)`; empty: nothing. */
  readonly in_use_by: readonly string[]
}

/** util-linux before 2.37 knows only `MOUNTPOINT`, one per device. */
export const LSBLK_COLUMNS =
  'NAME,KNAME,PATH,SIZE,TYPE,FSTYPE,LABEL,PARTLABEL,VENDOR,MODEL,SERIAL,WWN,RM,RO,MOUNTPOINTS,TRAN'
export const LSBLK_COLUMNS_OLD = LSBLK_COLUMNS.replace('MOUNTPOINTS', 'MOUNTPOINT')

/** More than any machine has; a longer answer is refused whole, never cut to look complete. */
const MAX_CHARACTERS = 2 ** 26
const MAX_NODES = 100_000
const MAX_DEPTH = 32
const MAX_FIELD = 4096

/** `not-lsblk-json` also beyond the bounds above. */
export function parseLsblk(text: string): Result<readonly LsblkNode[], 'not-lsblk-json'> {
  if (text.length > MAX_CHARACTERS) return refuse('not-lsblk-json')
  const devices = fieldOf(parseJson(text), 'blockdevices')
  const reader = { left: MAX_NODES }
  const nodes = readNodes(devices, 0, reader)
  return nodes === null ? refuse('not-lsblk-json') : accept(nodes)
}

export function indexNodes(nodes: readonly LsblkNode[]): ReadonlyMap<string, LsblkNode> {
  const byName = new Map<string, LsblkNode>()
  const visit = (node: LsblkNode) => {
    if (!byName.has(node.kname)) byName.set(node.kname, node)
    node.children.forEach(visit)
  }
  nodes.forEach(visit)
  return byName
}

export function renderDiskRow(node: LsblkNode, { identity, uses }: TargetDevice): DiskRow {
  const { path, size, type, vendor, model, tran, removable, readonly } = node
  const mountpoints = [...new Set(mountpointsOf(node))]
  const { serial, sizeBytes: size_bytes } = identity
  const in_use_by = listUsers(uses)
  const known = { path, size, type, vendor, model, serial, tran, removable, readonly, mountpoints }
  return { ...known, size_bytes, in_use_by }
}

const mountpointsOf = (node: LsblkNode): readonly string[] => [
  ...node.mountpoints,
  ...node.children.flatMap(mountpointsOf),
]

const fieldOf = (from: unknown, key: string): unknown => (isRecord(from) ? from[key] : undefined)

/** Null: no list of devices, or too long or too deep. */
function readNodes(
  from: unknown,
  depth: number,
  reader: { left: number },
): readonly LsblkNode[] | null {
  if (!Array.isArray(from) || depth > MAX_DEPTH) return null
  const nodes: LsblkNode[] = []
  for (const item of from) {
    reader.left -= 1
    const node = reader.left < 0 ? null : readNode(item, depth, reader)
    if (node === null) return null
    nodes.push(node)
  }
  return nodes
}

function readNode(from: unknown, depth: number, reader: { left: number }): LsblkNode | null {
  const name = readText(from, 'name')
  const type = readText(from, 'type')
  const children = readNodes(fieldOf(from, 'children') ?? [], depth + 1, reader)
  if (name === null || type === null || children === null) return null
  return {
    name,
    kname: readText(from, 'kname') ?? name,
    path: readText(from, 'path') ?? `/dev/${name}`,
    type,
    size: readText(from, 'size'),
    fstype: readText(from, 'fstype'),
    label: readText(from, 'label'),
    partlabel: readText(from, 'partlabel'),
    vendor: readText(from, 'vendor'),
    model: readText(from, 'model'),
    serial: readText(from, 'serial'),
    wwn: readText(from, 'wwn'),
    tran: readText(from, 'tran'),
    removable: readFlag(from, 'rm'),
    readonly: readFlag(from, 'ro'),
    mountpoints: readMountpoints(from),
    children,
  }
}

/** Trimmed; null: absent, empty or overlong. */
function readText(from: unknown, key: string): string | null {
  const value = fieldOf(from, key)
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || text.length > MAX_FIELD) return null
  return text.trim() || null
}

/** Old lsblk prints "0" and "1". */
const readFlag = (from: unknown, key: string) => {
  const value = fieldOf(from, key)
  return value === true || value === 1 || value === '1'
}

/** Not trimmed: blanks may be part of them. */
function readMountpoints(from: unknown): readonly string[] {
  const many = fieldOf(from, 'mountpoints')
  const list: readonly unknown[] = Array.isArray(many) ? many : [fieldOf(from, 'mountpoint')]
  return list.filter((point) => typeof point === 'string' && point !== '').map(String)
}

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
