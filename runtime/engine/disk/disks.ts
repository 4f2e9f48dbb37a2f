/** Lists disks, and gathers everything that must be known of one before it may be overwritten. */
import { realpath, open, readdir, readFile, readlink, stat } from 'node:fs/promises'
import {
  type SysBlock,
  decideUses,
  listParts,
  assembleFacts,
  listPaths,
  lsblkName,
  type Sightings,
  parseZpoolStatus,
  type PoolMember,
  type Backing,
} from './rules/sightings.ts'
import {
  decideApart,
  type SurveyedDisk,
  type TargetDevice,
  type TargetFacts,
} from './rules/disk.ts'
import {
  indexNodes,
  renderDiskRow,
  type DiskRow,
  type LsblkNode,
  LSBLK_COLUMNS,
  LSBLK_COLUMNS_OLD,
  parseLsblk,
} from './rules/lsblk.ts'
import { listBlocks, listBtrfs, readSysFacts, type SysFacts } from './sysfs.ts'
import type { Shell } from '#kit/host/shell.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { join } from 'node:path'
import { parseMountinfo, parseSwaps, type MountTable } from './rules/mount-map.ts'

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

/** A device that does not answer must not hold up everything. */
const TIMEOUT_MS = 60_000

export async function readLsblk(
  shell: Shell,
  ...more: readonly string[]
): Promise<readonly LsblkNode[]> {
  const run = (columns: string) =>
    shell.run(['lsblk', '--json', '--output', columns, ...more], { timeout: TIMEOUT_MS })
  const first = await run(LSBLK_COLUMNS)
  const isOld = first.exitCode !== 0 && first.stderr.includes('unknown column')
  const { exitCode, stdout, stderr } = isOld ? await run(LSBLK_COLUMNS_OLD) : first
  if (exitCode !== 0) {
    throw new Fault('tool-failed', `lsblk: ${stderr.trim() || `exit code ${exitCode}`}`)
  }
  const parsed = parseLsblk(stdout)
  if (parsed.ok) return parsed.value
  throw new Fault('tool-failed', 'lsblk printed something other than its JSON')
}

// Reads mounts and swap from /proc, in every mount namespace that we can access.

/** Bounds for a hostile crowd of containers; a mount past them still stops the exclusive open. */
const MAX_TABLES = 1024
const MAX_CHARACTERS = 2 ** 26

/** Without our own mounts nothing is known of any disk. */
export async function readOwnMounts(proc: string): Promise<MountTable> {
  try {
    return { process: null, mounts: parseMountinfo(await read(proc, 'self', 'mountinfo')) }
  } catch (cause) {
    throw new Fault('tool-missing', `${join(proc, 'self/mountinfo')} cannot be read`, {
      hint: 'Mount it: mount -t proc proc /proc',
      cause,
    })
  }
}

/**
 * One process for each namespace, and 1 and 2: kernel threads see what an initramfs left mounted
 * below today's root.
 */
export async function listOtherMounts(proc: string): Promise<readonly MountTable[]> {
  const names = await readdir(proc).catch(() => [])
  const pids = names.filter((name) => /^[1-9]\d*$/.test(name)).map(Number)
  const views = await Promise.all(
    pids.toSorted((a, b) => a - b).map(async (pid) => ({ pid, view: await readView(proc, pid) })),
  )
  const own = await readView(proc, 'self')
  const seen = new Set([own, null])
  const chosen = views.filter(({ pid, view }) => {
    const isNew = !seen.has(view)
    seen.add(view)
    return isNew || pid <= 2
  })
  const tables: MountTable[] = []
  let left = MAX_CHARACTERS
  for (const { pid } of chosen.slice(0, MAX_TABLES)) {
    // A process may have ended meanwhile, or be another user's.
    const text = await read(proc, `${pid}`, 'mountinfo').catch(() => '')
    left -= text.length
    if (left < 0) break
    if (text !== '') tables.push({ process: pid, mounts: parseMountinfo(text) })
  }
  return tables
}

async function listSwaps(proc: string): Promise<readonly string[]> {
  // Kernels without swap have no such file.
  return parseSwaps(await read(proc, 'swaps').catch(() => ''))
}

export async function listPools(proc: string): Promise<readonly string[]> {
  const entries = await readdir(join(proc, 'spl/kstat/zfs'), { withFileTypes: true }).catch(
    () => [],
  )
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** Null: it leads nowhere, or to something that we may not look at. */
async function readBacking(proc: string, path: string): Promise<Backing | null> {
  try {
    const facts = await stat(path, { bigint: true })
    if (facts.isBlockDevice()) return { kind: 'device', dev: renderDev(facts.rdev) }
    const mountId = await readMountId(proc, path).catch(() => null)
    return { kind: 'file', mountId, dev: renderDev(facts.dev) }
  } catch {
    return null
  }
}

/** `major:minor` of a number from stat. */
const renderDev = (number: bigint) => {
  const major = ((number >> 8n) & 0xfffn) | ((number >> 32n) & ~0xfffn)
  const minor = (number & 0xffn) | ((number >> 12n) & ~0xffn)
  return `${major}:${BigInt.asUintN(32, minor)}`
}

/** Names a file without opening it: no side effects, no permission needed. */
const O_PATH = 0o10000000

async function readMountId(proc: string, path: string): Promise<number | null> {
  await using file = await open(path, O_PATH)
  const text = await read(proc, 'self/fdinfo', `${file.fd}`)
  const id = /^mnt_id:\s*(\d+)$/m.exec(text)?.[1]
  return id === undefined ? null : Number(id)
}

const read = (...path: readonly string[]) => readFile(join(...path), 'utf8')

/** With the root, as a process in a chroot sees less than its namespace has. */
async function readView(proc: string, pid: number | 'self'): Promise<string | null> {
  const links = ['ns/mnt', 'root'].map((name) => readlink(join(proc, `${pid}`, name)))
  return Promise.all(links).then(
    (parts) => parts.join(' '),
    () => null,
  )
}
