/** Lists disks, and gathers everything that must be known of one before it may be overwritten; waits for udev. */
import { open, readdir, readFile, readlink, realpath, stat, statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kit/foundation/fault.ts'
import { createShell, type Environment, type Shell } from '#kit/host/shell.ts'
import {
  decideApart,
  type DiskPart,
  type LoopBacking,
  type SurveyedDisk,
  type TargetDevice,
  type TargetFacts,
} from './rules/disk.ts'
import type { Range } from './rules/extents.ts'
import {
  type Contents,
  type DiskRow,
  indexNodes,
  LSBLK_COLUMNS,
  LSBLK_COLUMNS_OLD,
  type LsblkNode,
  parseBlkid,
  parseLsblk,
  renderDiskRow,
} from './rules/lsblk.ts'
import {
  assembleFacts,
  type Backing,
  decideUses,
  isOffered,
  listParts,
  listPaths,
  lsblkName,
  type Members,
  type MountTable,
  parseLoops,
  parseMountinfo,
  parseSwaps,
  parseZpoolStatus,
  type PoolMember,
  type Sightings,
  type SysBlock,
} from './rules/disk-uses.ts'

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

type SysFacts = Awaited<ReturnType<typeof readSysFacts>>

const SECTOR = 512

/** With a number: hidden paths of NVMe multipath have none. */
export async function listBlocks(sys: string): Promise<readonly SysBlock[]> {
  const folder = join(sys, 'class/block')
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new Fault('tool-missing', `${folder} cannot be read`, {
      hint: 'Mount it: mount -t sysfs sysfs /sys',
      cause,
    })
  })
  const blocks = await Promise.all(names.map((name) => readBlock(join(folder, name), name)))
  return blocks.filter((block) => block !== null)
}

/** A partition's queue and serial come from its disk. */
export async function readSysFacts(
  sys: string,
  { name, partition }: Pick<SysBlock, 'name' | 'partition'>,
) {
  const own = join(sys, 'class/block', name)
  const disk = join(sys, 'class/block', partition?.of ?? name)
  const [size, sector, diskseq, writeZeroesMaxBytes, discardMaxBytes] = await Promise.all([
    readNumber(own, 'size'),
    readNumber(disk, 'queue/logical_block_size'),
    readNumber(disk, 'diskseq'),
    readNumber(disk, 'queue/write_zeroes_max_bytes'),
    readNumber(disk, 'queue/discard_max_bytes'),
  ])
  const [ownReadonly, diskReadonly, serial, deviceSerial, dmUuid, loop] = await Promise.all([
    readText(own, 'ro'),
    readText(disk, 'ro'),
    readText(disk, 'serial'),
    readText(disk, 'device/serial'),
    readText(disk, 'dm/uuid'),
    readLoopBacking(disk),
  ])
  return {
    sizeBytes: size * SECTOR,
    sectorBytes: sector || SECTOR,
    readonly: ownReadonly === '1' || diskReadonly === '1',
    diskseq: diskseq || null,
    serial: serial ?? deviceSerial,
    dmUuid,
    zeros: { loop, writeZeroesMaxBytes, discardMaxBytes },
  }
}

/** statfs types that can zero a file in place: ext4, XFS, btrfs (fallocate(2)). */
const ZEROES_IN_PLACE: readonly number[] = [0xef53, 0x58465342, 0x9123683e]
/** stat counts blocks of this size. */
const STAT_BLOCK = 512

async function readLoopBacking(disk: string): Promise<LoopBacking | null> {
  if ((await list(disk, 'loop')).length === 0) return null
  const path = (await readLine(disk, 'loop/backing_file')) ?? ''
  // Skips deleted files, and those that only another mount namespace sees.
  const [file, system] = await Promise.all([
    stat(path).catch(() => null),
    statfs(path).catch(() => null),
  ])
  if (file === null || system === null || !ZEROES_IN_PLACE.includes(system.type)) return 'sparse'
  return file.isFile() && file.blocks * STAT_BLOCK >= file.size ? 'allocated' : 'sparse'
}

export async function listBtrfs(sys: string): Promise<readonly Members[]> {
  const folder = join(sys, 'fs/btrfs')
  const found = await Promise.all(
    (await list(folder)).map(async (id) => ({ id, devices: await list(folder, id, 'devices') })),
  )
  return found.filter(({ devices }) => devices.length > 0)
}

async function readBlock(folder: string, name: string): Promise<SysBlock | null> {
  const [dev, isPartition, holders, backing] = await Promise.all([
    readText(folder, 'dev'),
    readText(folder, 'partition'),
    list(folder, 'holders'),
    readLine(folder, 'loop/backing_file'),
  ])
  if (dev === null) return null
  if (isPartition === null) return { name, dev, partition: null, holders, backing }
  const partition = await readPartitionRange(folder)
  return partition === null ? null : { name, dev, partition, holders, backing }
}

/** Null: it went away meanwhile. */
async function readPartitionRange(folder: string) {
  const [real, start, size] = await Promise.all([
    realpath(folder).catch(() => null),
    readNumber(folder, 'start'),
    readNumber(folder, 'size'),
  ])
  return real === null ? null : { of: basename(dirname(real)), start, end: start + size }
}

/** Removes only the newline; null: absent or empty. */
async function readLine(...path: readonly string[]): Promise<string | null> {
  // Most attributes exist for some kinds of devices only.
  const text = await readFile(join(...path), 'utf8').catch(() => '')
  return text.replace(/\n$/, '') || null
}

export const readText = async (...path: readonly string[]) =>
  (await readLine(...path))?.trim().slice(0, 4096) || null

const list = (...path: readonly string[]): Promise<readonly string[]> =>
  readdir(join(...path)).catch(() => [])

/** 0: absent, or no number. */
async function readNumber(...path: readonly string[]): Promise<number> {
  const number = Number(await readText(...path))
  return Number.isSafeInteger(number) && number > 0 ? number : 0
}

const START_COLDPLUG = ['systemctl', 'start', 'systemd-udev-trigger.service']

interface SettleOptions {
  /** Seconds at most; absent: 10. */
  readonly seconds?: number
  readonly signal?: AbortSignal
}

/** Waits until udev knows the devices of before, then as `settleDevices`; `seconds` each. */
export async function settleFirstDevices(
  shell: Shell,
  options: SettleOptions & Required<Pick<SettleOptions, 'seconds'>>,
): Promise<void> {
  const { seconds, ...rest } = options
  // systemd has begun that already: systemctl waits until it is done.
  if (await shell.has('systemctl'))
    await shell.run(START_COLDPLUG, { ...rest, timeout: seconds * 1000 }).catch(() => null)
  await settleDevices(shell, options)
}

/** Waits for udev's events so far, at most `seconds`; returns at once without udev. */
export async function settleDevices(
  shell: Shell,
  { seconds = 10, ...options }: SettleOptions = {},
): Promise<void> {
  if (!(await shell.has('udevadm'))) return
  await shell.run(['udevadm', 'settle', `--timeout=${seconds}`], options)
}

/** udev may hold a disk for a moment that was closed after writing. */
const TRIES = 5
const PAUSE_MS = 200

/** Best effort: a disk that cannot be re-read shows its partitions after the next start. */
export async function rereadPartitions(shell: Shell, node: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { exitCode, stderr } = await shell.run(['blockdev', '--rereadpt', node])
    // The kernel never reads some disks (loop devices): no use in waiting.
    if (exitCode === 0 || !stderr.includes('busy')) break
    await pause(PAUSE_MS)
  }
  // For kernels that do not read tables by themselves.
  await shell.run(['partx', '--update', node])
  await settleDevices(shell)
}

/** A device that does not answer must not hold up everything. */
const BLKID_TIMEOUT_MS = 5000
const MAX_PARTS = 64

/** Best effort: without root or the tool the disk stays as it is. */
export async function fillContents(shell: Shell, disk: SurveyedDisk): Promise<SurveyedDisk> {
  const listed = disk.parts.length === 0 ? [wholeOf(disk)] : disk.parts
  const parts = await Promise.all(
    listed.map((part, index) => (index < MAX_PARTS ? fillPart(shell, part) : part)),
  )
  const isBlank = disk.parts.length === 0 && parts.every(({ fstype }) => fstype === null)
  return { ...disk, parts: isBlank ? [] : parts }
}

/** A file system may lie on the disk itself. */
const wholeOf = ({ path }: SurveyedDisk): DiskPart => ({
  device: path,
  sizeBytes: 0,
  fstype: null,
  label: null,
  partlabel: null,
})

async function fillPart(shell: Shell, part: DiskPart): Promise<DiskPart> {
  if (part.fstype !== null) return part
  try {
    const { type, label, partlabel } = await probeContents(shell, part.device)
    return { ...part, fstype: type, label, partlabel: part.partlabel ?? partlabel }
  } catch (thrown) {
    if (thrown instanceof Fault) return part
    throw thrown
  }
}

/**
 * Reads the device, as udev's record may be outdated. `blkid` exits with 2 for "nothing known", 8
 * for "more than one thing".
 */
export async function probeContents(shell: Shell, node: string, part?: Range): Promise<Contents> {
  const place = part === undefined ? [] : [`--offset=${part.offset}`, `--size=${part.bytes}`]
  const argv = ['blkid', '--probe', '--output', 'export', ...place, node]
  return parseBlkid((await shell.run(argv, { timeout: BLKID_TIMEOUT_MS })).stdout)
}

const SETTLE_SECONDS = 10

/** With `FLASHER_LIVE=1` the first list waits for drivers of disks. */
export function openOfferedDisks(env: Environment) {
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const loops = parseLoops(env['FLASHER_OFFER_LOOP'] ?? '')
  const settle = async () => {
    if (env['FLASHER_LIVE'] !== '1') return
    await settleFirstDevices(shell, { seconds: SETTLE_SECONDS }).catch(() => null)
  }
  let settling: Promise<void> | null = null
  return {
    async survey(): Promise<readonly SurveyedDisk[]> {
      await (settling ??= settle())
      const found = await disks.survey({ loops: loops !== 'none' })
      return found.filter(({ path, device }) => device.type !== 'loop' || isOffered(loops, path))
    },
    fill: (disk: SurveyedDisk): Promise<SurveyedDisk> => fillContents(shell, disk),
  }
}
