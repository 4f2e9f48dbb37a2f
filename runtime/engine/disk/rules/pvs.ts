/** LVM's physical volumes, as pvs(8) lists them, and which volume groups may be activated. Apart from lsblk: zod takes 40 ms. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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
    ? `its volume group ${name} is also on other disks`
    : null
}
