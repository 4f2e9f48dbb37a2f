/** Lists disks, and gathers everything that must be known of one before it may be overwritten. */
import { realpath } from 'node:fs/promises'
import type { SysBlock } from './rules/block-graph.ts'
import { decideUses } from './rules/disk-uses.ts'
import {
  decideApart,
  type SurveyedDisk,
  type TargetDevice,
  type TargetFacts,
} from './rules/disk.ts'
import { listParts } from './rules/disk-parts.ts'
import { indexNodes, renderDiskRow, type DiskRow, type LsblkNode } from './rules/lsblk.ts'
import { assembleFacts, listPaths, lsblkName, type Sightings } from './rules/sightings.ts'
import { parseZpoolStatus, type PoolMember } from './rules/zpool.ts'
import { readLsblk } from './block-list.ts'
import { listOtherMounts, listPools, listSwaps, readBacking, readOwnMounts } from './proc.ts'
import { listBlocks, listBtrfs, readSysFacts, type SysFacts } from './sysfs.ts'
import type { Shell } from '#kit/host/shell.ts'

interface DisksOptions {
  readonly shell: Shell
  readonly sys?: string
  readonly proc?: string
}

type Host = Required<DisksOptions>

/** A multipath device is the only safe way to the disk behind it. */
const SURVEYED = ['disk', 'mpath']

/** A device that does not answer must not hold up everything. */
const TOOL_TIMEOUT = 60_000

export type Disks = ReturnType<typeof createDisks>

/** Each call reads everything anew and rejects with a Fault where a tool is missing or fails. */
export function createDisks({ shell, sys = '/sys', proc = '/proc' }: DisksOptions) {
  const host: Host = { shell, sys, proc }
  const inspectTogether = createTogether((imagePath: string | null) =>
    inspectDisks(host, imagePath),
  )

  return {
    async list(): Promise<readonly DiskRow[]> {
      const { nodes, sightings } = await inspectDisks(host, null)
      const disks = await findDisks(sys, nodes, sightings.blocks, ['disk'])
      return disks.map(({ row, block, facts }) =>
        renderDiskRow(row, describeBlock(row.path, block, facts, sightings)),
      )
    },
    /**
     * Follows links. No Fault for a path that leads nowhere or not to a block device. `imagePath`:
     * protects the disk that holds the image. Calls at the same time share a look that begins after
     * them.
     */
    async probe(path: string, imagePath: string | null): Promise<TargetFacts> {
      const found = await readBacking(proc, path)
      if (found === null) return { path, exists: false, device: null }
      if (found.kind === 'file') return { path, exists: true, device: null }
      const node = await realpath(path).catch(() => null)
      if (node === null) return { path, exists: false, device: null }
      const { sightings } = await inspectTogether(imagePath)
      const target = sightings.blocks.find((block) => block.dev === found.dev)
      if (target === undefined) return { path, exists: true, device: absent(node) }
      const facts = await readSysFacts(sys, target)
      return { path, exists: true, device: describeBlock(node, target, facts, sightings) }
    },
    /** In lsblk's order. `loops`: loop devices with a backing file count as disks. */
    async survey({ loops = false }: { readonly loops?: boolean } = {}): Promise<
      readonly SurveyedDisk[]
    > {
      const { sightings } = await inspectDisks(host, null)
      const types = loops ? [...SURVEYED, 'loop'] : SURVEYED
      const disks = await findDisks(sys, [...sightings.rows.values()], sightings.blocks, types)
      return disks.map(({ row: { path, removable }, block, facts }) => ({
        path,
        removable,
        device: describeBlock(path, block, facts, sightings),
        parts: listParts(sightings, block.name),
      }))
    },
  }
}

async function inspectDisks(
  { shell, sys, proc }: Host,
  imagePath: string | null,
): Promise<{ readonly nodes: readonly LsblkNode[]; readonly sightings: Sightings }> {
  const [blocks, nodes, own, others, swaps, btrfs, pools] = await Promise.all([
    listBlocks(sys),
    readLsblk(shell),
    readOwnMounts(proc),
    listOtherMounts(proc),
    listSwaps(proc),
    listBtrfs(sys),
    listPools(proc),
  ])
  const poolMembers = await readZpool(shell, pools)
  const rows = indexNodes(nodes)
  const tables = [own, ...others]
  const seen = { blocks, rows, tables, swaps, btrfs, pools, poolMembers, imagePath }
  const paths = listPaths(seen)
  const backings = await Promise.all(paths.map((path) => readBacking(proc, path)))
  const sightings = {
    ...seen,
    backings: new Map(paths.map((path, n) => [path, backings[n] ?? null])),
  }
  return { nodes, sightings }
}

/** Empty without an imported pool or the tool. */
async function readZpool(shell: Shell, pools: readonly string[]): Promise<readonly PoolMember[]> {
  if (pools.length === 0 || !(await shell.has('zpool'))) return []
  const { stdout } = await shell.run(['zpool', 'status', '-P', '-L'], { timeout: TOOL_TIMEOUT })
  return parseZpoolStatus(stdout)
}

async function findDisks(
  sys: string,
  rows: readonly LsblkNode[],
  blocks: readonly SysBlock[],
  types: readonly string[],
) {
  const byName = new Map(blocks.map((block) => [lsblkName(block.name), block]))
  const found = rows.flatMap((row) => {
    const block = byName.get(row.kname)
    if (block === undefined || !types.includes(row.type)) return []
    return decideApart(block) === null ? [{ row, block }] : []
  })
  const disks = await Promise.all(
    found.map(async (disk) => ({ ...disk, facts: await readSysFacts(sys, disk.block) })),
  )
  // An empty drive is listed, but not a device that nothing was ever connected to.
  return disks.filter(({ row, facts }) => facts.sizeBytes > 0 || row.removable)
}

function describeBlock(
  node: string,
  target: SysBlock,
  facts: SysFacts,
  sightings: Sightings,
): TargetDevice {
  const diskName = target.partition?.of ?? target.name
  // Names come from lsblk, which asks udev; without it /sys knows some.
  const named = sightings.rows.get(lsblkName(diskName)) ?? UNNAMED
  const { vendor, model, tran, serial, wwn } = named
  const { sizeBytes, diskseq, sectorBytes, readonly, zeros } = facts
  return {
    node,
    type: decideType(target, sightings),
    sectorBytes,
    readonly,
    vendor,
    model,
    tran,
    zeros,
    identity: { serial: serial ?? facts.serial, wwn: wwn ?? facts.dmUuid, sizeBytes, diskseq },
    uses: decideUses(assembleFacts(sightings), target.name),
  }
}

const UNNAMED = { vendor: null, model: null, tran: null, serial: null, wwn: null }

/** Memory counts as a disk for those who ask for it. */
function decideType(target: SysBlock, { rows }: Sightings): string {
  const apart = target.partition === null ? decideApart(target) : null
  if (apart !== null && apart !== 'memory') return apart
  return rows.get(lsblkName(target.name))?.type ?? guessType(target)
}

/** lsblk leaves out devices such as memory disks. */
function guessType({ partition, backing }: SysBlock): string {
  if (partition !== null) return 'part'
  return backing === null ? 'disk' : 'loop'
}

/** A node without a device counts as a drive without a medium. */
const absent = (node: string): TargetDevice => ({
  node,
  type: 'disk',
  sectorBytes: 512,
  readonly: false,
  vendor: null,
  model: null,
  tran: null,
  identity: { serial: null, wwn: null, sizeBytes: 0, diskseq: null },
  zeros: { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 },
  uses: [],
})

/**
 * A call during another waits for the next one, which serves all callers with the same argument:
 * nobody gets a result from before they asked.
 */
export function createTogether<Argument, Value>(
  act: (argument: Argument) => Promise<Value>,
): (argument: Argument) => Promise<Value> {
  let last: Promise<unknown> = Promise.resolve()
  const waiting = new Map<Argument, Promise<Value>>()
  return (argument) => {
    const shared = waiting.get(argument)
    if (shared !== undefined) return shared
    const call = last.then(() => {
      waiting.delete(argument)
      return act(argument)
    })
    waiting.set(argument, call)
    last = call.then(NOTHING, NOTHING)
    return call
  }
}

const NOTHING = () => undefined
