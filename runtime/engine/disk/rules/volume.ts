/** The places of file systems on a flashed disk, and which LVM volume groups of it may be activated. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { indexNodes, type LsblkNode } from './lsblk.ts'

export interface PhysicalVolume {
  readonly pv_name: string
  readonly vg_name: string
  readonly vg_uuid: string
  /** Physical volumes that are not on the devices LVM may see. */
  readonly missing: number
}

export interface GroupDecision {
  readonly name: string
  readonly nodes: readonly string[]
  /** Null: it may be activated. */
  readonly refusal: string | null
}

export const PVS_COLUMNS = 'pv_name,vg_name,vg_uuid,vg_missing_pv_count'

const Row = z.object({
  pv_name: z.string().max(4096),
  vg_name: z.string().max(127),
  vg_uuid: z.string().max(64),
  vg_missing_pv_count: z.coerce.number().int().nonnegative(),
})
const Report = z.object({
  report: z.array(z.object({ pv: z.array(Row).max(10_000) })).max(100),
})

export function parsePhysicalVolumes(
  text: string,
): Result<readonly PhysicalVolume[], 'not-a-pvs-report'> {
  const report = Report.safeParse(parseJson(text))
  if (!report.success) return refuse('not-a-pvs-report')
  const rows = report.data.report.flatMap(({ pv }) => pv)
  return accept(
    rows.map(({ vg_missing_pv_count, ...row }) => ({ ...row, missing: vg_missing_pv_count })),
  )
}

/** lvm(8); anything else never gets onto a command line. */
const GROUP_NAME = /^[a-zA-Z0-9+_.][a-zA-Z0-9+_.-]{0,126}$/

/**
 * `ours`: on the flashed disk; `others`: of this machine. LVM commands would mix up groups of the
 * same name or identity.
 */
export function decideGroups(
  ours: readonly PhysicalVolume[],
  others: readonly PhysicalVolume[],
): readonly GroupDecision[] {
  const named = Map.groupBy(
    ours.filter(({ vg_name }) => vg_name !== ''),
    ({ vg_name }) => vg_name,
  )
  return [...named].map(([name, rows]) => ({
    name,
    nodes: rows.map(({ pv_name }) => pv_name),
    refusal: refuseGroup(name, rows, others),
  }))
}

function refuseGroup(
  name: string,
  rows: readonly PhysicalVolume[],
  others: readonly PhysicalVolume[],
): string | null {
  const uuids = new Set(rows.map(({ vg_uuid }) => vg_uuid))
  const twin = others.find((other) => other.vg_name === name || uuids.has(other.vg_uuid))
  if (!GROUP_NAME.test(name)) return 'its volume group has a name that LVM does not allow'
  if (uuids.size > 1) return `it holds two volume groups named ${name}`
  if (twin !== undefined) {
    return `its volume group ${name} is also one of this machine (on ${twin.pv_name}), which must not be touched`
  }
  return rows.some(({ missing }) => missing > 0)
    ? `its volume group ${name} also lies on other disks`
    : null
}

// The places of a file system on a flashed disk: a partition, a logical volume, or the whole disk.

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
