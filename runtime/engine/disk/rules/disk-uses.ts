/** Finds everything that uses a disk: from /sys, /proc, lsblk and zpool. */
import type { DiskPart, DiskUse } from './disk.ts'
import type { LsblkNode } from './lsblk.ts'

export type Backing =
  | { readonly kind: 'device'; readonly dev: string }
  /** `mountId`: of our own mount table; null: the kernel does not say. */
  | { readonly kind: 'file'; readonly mountId: number | null; readonly dev: string }

export interface Sightings {
  readonly blocks: readonly SysBlock[]
  readonly rows: ReadonlyMap<string, LsblkNode>
  /** Our own table first. */
  readonly tables: readonly MountTable[]
  readonly swaps: readonly string[]
  readonly btrfs: readonly Members[]
  readonly pools: readonly string[]
  readonly poolMembers: readonly PoolMember[]
  readonly imagePath: string | null
  /** Of `listPaths`; null: leads nowhere. */
  readonly backings: ReadonlyMap<string, Backing | null>
}

/** lsblk prints a slash where /sys has an exclamation mark. */
export const lsblkName = (name: string): string => name.replaceAll('!', '/')
const sysName = (name: string) => name.replaceAll('/', '!')

export function listPaths(seen: Omit<Sightings, 'backings'>): readonly string[] {
  return [
    ...new Set([
      ...seen.tables.flatMap(({ mounts }) => mounts.flatMap(listSources)),
      ...seen.blocks.flatMap(({ backing }) => backing ?? []),
      ...seen.swaps,
      ...seen.poolMembers.map(({ path }) => path),
      ...(seen.imagePath === null ? [] : [seen.imagePath]),
    ]),
  ]
}

export function assembleFacts(seen: Sightings): UseFacts {
  const { blocks, tables, rows } = seen
  const byDev = new Map(blocks.map(({ dev, name }) => [dev, name]))
  const nameOf = createNameOf(seen, byDev)
  const bySource = new Map(
    tables.flatMap(({ mounts }) =>
      mounts.flatMap(listSources).flatMap((path) => {
        const name = nameOf(path)
        return name === null ? [] : [[path, name] as const]
      }),
    ),
  )
  const mounts: MountFacts = { byDev, bySource, btrfs: seen.btrfs, zfs: listZfs(seen, nameOf) }
  const graph = resolveLoops(seen, mounts, nameOf)
  return {
    ...mounts,
    graph,
    tables,
    swaps: seen.swaps.flatMap((path) => nameOf(path) ?? []),
    system: listSystem(
      mounts,
      tables.filter(({ process }) => process === null || process <= 2),
    ),
    image: listImageDevices(seen, mounts, graph, nameOf),
    labels: new Map([...rows.values()].map((row) => [sysName(row.kname), row])),
  }
}

type NameOf = (path: string) => string | null

/** A path of another namespace counts by its name. */
function createNameOf({ backings, blocks }: Sightings, byDev: ReadonlyMap<string, string>): NameOf {
  const names = new Set(blocks.map(({ name }) => name))
  return (path) => {
    const backing = backings.get(path) ?? null
    if (backing?.kind === 'file') return null
    const found = backing === null ? undefined : byDev.get(backing.dev)
    const called = sysName(path.replace(/^\/(dev\/)?/, ''))
    return found ?? (names.has(called) ? called : null)
  }
}

function listFileDevices(seen: Sightings, facts: MountFacts, path: string): readonly string[] {
  const backing = seen.backings.get(path) ?? null
  if (backing?.kind !== 'file') return []
  const mounts = seen.tables[0]?.mounts ?? []
  const mount = mounts.find(({ id }) => id === backing.mountId)
  if (mount !== undefined) return listHosts(facts, mount, mounts)
  const name = facts.byDev.get(backing.dev)
  return name === undefined ? [] : [name]
}

function resolveLoops(seen: Sightings, facts: MountFacts, nameOf: NameOf): BlockGraph {
  const resolve = ({ backing }: SysBlock) =>
    backing === null ? null : { on: nameOf(backing), fileOn: listFileDevices(seen, facts, backing) }
  return new Map(seen.blocks.map((block) => [block.name, { ...block, loop: resolve(block) }]))
}

/** An image that is a device: also everything built on it. */
function listImageDevices(
  seen: Sightings,
  facts: MountFacts,
  graph: BlockGraph,
  nameOf: NameOf,
): readonly string[] {
  if (seen.imagePath === null) return []
  const device = nameOf(seen.imagePath)
  return device === null
    ? listFileDevices(seen, facts, seen.imagePath)
    : [...listAbove(graph, [device])]
}

/** By lsblk's label, and as zpool lists them (spares and caches have no label). */
function listZfs(seen: Sightings, nameOf: NameOf): readonly Members[] {
  const labelled = [...seen.rows.values()].flatMap(({ fstype, label, kname }) =>
    fstype === 'zfs_member' ? [{ pool: label, name: sysName(kname) }] : [],
  )
  const named = seen.poolMembers.map(({ pool, path }) => ({ pool, name: nameOf(path) }))
  const all = [...labelled, ...named]
  return seen.pools.map((id) => ({
    id,
    devices: [
      ...new Set(all.flatMap(({ pool, name }) => (pool === id && name !== null ? [name] : []))),
    ],
  }))
}

// Parses `zpool status -P -L`: which device nodes belong to which imported pool.

export interface PoolMember {
  readonly pool: string
  /** Links resolved. */
  readonly path: string
}

/** With spares, logs and caches; rows without a device are skipped. */
export function parseZpoolStatus(text: string): readonly PoolMember[] {
  const members: PoolMember[] = []
  let pool: string | null = null
  for (const line of text.split('\n')) {
    pool = /^ *pool: (\S.*)$/.exec(line)?.[1] ?? pool
    const path = /^\t *(\/dev\/\S+)/.exec(line)?.[1]
    if (pool !== null && path !== undefined) members.push({ pool, path })
  }
  return members
}

/** The present content of a disk: its partitions, or the file system on the whole disk. */
const SECTOR = 512

export function listParts(
  { blocks, rows }: Pick<Sightings, 'blocks' | 'rows'>,
  disk: string,
): readonly DiskPart[] {
  const parts = blocks.filter(({ partition }) => partition?.of === disk)
  if (parts.length === 0) return listWhole(rows.get(lsblkName(disk)))
  return parts
    .toSorted((one, two) => startOf(one) - startOf(two))
    .map((block) => ({
      ...describe(rows.get(lsblkName(block.name)), `/dev/${lsblkName(block.name)}`),
      sizeBytes: block.partition === null ? 0 : (block.partition.end - startOf(block)) * SECTOR,
    }))
}

const startOf = ({ partition }: SysBlock) => partition?.start ?? 0

/** A disk without a table may hold a file system, or be a member of something. */
function listWhole(node: LsblkNode | undefined): readonly DiskPart[] {
  const hasContent = (node?.fstype ?? node?.label ?? null) !== null
  return node === undefined || !hasContent ? [] : [{ ...describe(node, node.path), sizeBytes: 0 }]
}

const describe = (node: LsblkNode | undefined, device: string) => ({
  device: node?.path ?? device,
  fstype: node?.fstype ?? null,
  label: node?.label ?? null,
  partlabel: node?.partlabel ?? null,
})

interface UseFacts extends MountFacts {
  readonly graph: BlockGraph
  /** Our own table first. */
  readonly tables: readonly MountTable[]
  readonly swaps: readonly string[]
  /** What the running system and the image lie on, before what these stand on. */
  readonly system: readonly string[]
  readonly image: readonly string[]
  readonly labels: ReadonlyMap<string, { readonly path: string; readonly type: string }>
}

export function decideUses(facts: UseFacts, target: string): readonly DiskUse[] {
  const { graph } = facts
  const own = [target, ...listOverlapping(graph, target)]
  const disk = graph.get(target)?.partition?.of
  const whole = disk === undefined ? [] : listAboveWhole(graph, disk)
  const names = [...new Set([...listAbove(graph, own), ...whole])]
  const mounts = listMounts(facts)
  const device = pathOf(facts, target)
  const touches = (roots: readonly string[]) => {
    const below = listBelow(graph, roots)
    return own.some((name) => below.has(name))
  }
  return [
    ...names.flatMap((name) => usesOfMounts(facts, name, mounts.get(name) ?? [])),
    ...names.flatMap((name) => listOwn(facts, name)),
    ...names.filter((name) => !mounts.has(name)).flatMap((name) => listBtrfs(facts, name)),
    ...(touches(facts.system) ? [{ kind: 'running-system', device } as const] : []),
    ...(touches(facts.image) ? [{ kind: 'holds-image', device } as const] : []),
  ]
}

const pathOf = ({ labels }: UseFacts, name: string) =>
  labels.get(name)?.path ?? `/dev/${name.replaceAll('!', '/')}`

interface DeviceMount {
  readonly name: string
  readonly at: string
  readonly process: number | null
}

const listMounts = (facts: UseFacts): ReadonlyMap<string, readonly DeviceMount[]> =>
  Map.groupBy(
    facts.tables.flatMap(({ process, mounts }) =>
      mounts.flatMap((mount) =>
        listNamed(facts, mount).map((name) => ({ name, at: mount.point, process })),
      ),
    ),
    ({ name }) => name,
  )

/** Mounts of other namespaces count only where ours does not show the device as mounted. */
function usesOfMounts(facts: UseFacts, name: string, mounts: readonly DeviceMount[]) {
  const ours = mounts.filter(({ process }) => process === null)
  const shown = ours.length > 0 ? ours : mounts
  const byPoint = Map.groupBy(shown, ({ at }) => at)
  return [...byPoint.values()].flatMap(([first]) => {
    if (first === undefined) return []
    const { at, process } = first
    const use = { kind: 'mounted' as const, device: pathOf(facts, name), at }
    return process === null ? use : { ...use, process }
  })
}

const isMember =
  (name: string) =>
  ({ devices }: Members) =>
    devices.includes(name)

function listOwn(facts: UseFacts, name: string): readonly DiskUse[] {
  const { graph, labels } = facts
  const device = pathOf(facts, name)
  const loops = [...graph.values()].filter(({ loop }) => loop?.on === name)
  return [
    ...(facts.swaps.includes(name) ? [{ kind: 'swap', device } as const] : []),
    ...(graph.get(name)?.holders ?? []).map((holder) => ({
      kind: 'holder' as const,
      device,
      holder: pathOf(facts, holder),
      what: labels.get(holder)?.type ?? 'unknown',
    })),
    ...loops.map((loop) => ({ kind: 'loop' as const, device, loop: pathOf(facts, loop.name) })),
    ...facts.zfs
      .filter(isMember(name))
      .map(({ id }) => ({ kind: 'zfs' as const, device, pool: id })),
  ]
}

const listBtrfs = (facts: UseFacts, name: string): readonly DiskUse[] =>
  facts.btrfs
    .filter(isMember(name))
    .map(({ id }) => ({ kind: 'btrfs', device: pathOf(facts, name), uuid: id }))

/** Named as in /sys/class/block (`sda1`, `dm-0`, `cciss!c0d0`). */
export interface SysBlock {
  readonly name: string
  /** `major:minor`. */
  readonly dev: string
  /** Its place on the disk in sectors of 512 bytes; null: no partition. */
  readonly partition: { readonly of: string; readonly start: number; readonly end: number } | null
  readonly holders: readonly string[]
  /** Path of a loop's backing file or device; null: no loop device. */
  readonly backing: string | null
}

interface BlockNode extends SysBlock {
  /** The device below a loop, or those that hold its backing file; null: no loop device. */
  readonly loop: { readonly on: string | null; readonly fileOn: readonly string[] } | null
}

type BlockGraph = ReadonlyMap<string, BlockNode>

/** A loop's file counts only downwards: upwards the mounted file system is reason enough. */
function listAbove(graph: BlockGraph, names: readonly string[]): ReadonlySet<string> {
  const above = Map.groupBy(listEdges(graph), ({ lower }) => lower)
  return spread(names, (name) => (above.get(name) ?? []).map(({ upper }) => upper))
}

function listBelow(graph: BlockGraph, names: readonly string[]): ReadonlySet<string> {
  const files = [...graph.values()].flatMap(({ name, loop }) => rise(loop?.fileOn ?? [], name))
  const below = Map.groupBy([...listEdges(graph), ...files], ({ upper }) => upper)
  return spread(names, (name) => (below.get(name) ?? []).map(({ lower }) => lower))
}

/** The disk and all built on it, but not on a partition of it. */
function listAboveWhole(graph: BlockGraph, disk: string): ReadonlySet<string> {
  const direct = listEdges(graph)
    .filter(({ lower, upper }) => lower === disk && graph.get(upper)?.partition?.of !== disk)
    .map(({ upper }) => upper)
  return new Set([disk, ...listAbove(graph, direct)])
}

function listOverlapping(graph: BlockGraph, name: string): readonly string[] {
  const own = graph.get(name)?.partition
  if (!own) return []
  return [...graph.values()].flatMap(({ name: other, partition }) => {
    if (!partition || other === name || partition.of !== own.of) return []
    return partition.start < own.end && own.start < partition.end ? [other] : []
  })
}

interface Edge {
  readonly lower: string
  readonly upper: string
}

const rise = (lowers: readonly string[], upper: string): readonly Edge[] =>
  lowers.map((lower) => ({ lower, upper }))

const listEdges = (graph: BlockGraph): readonly Edge[] =>
  [...graph.values()].flatMap(({ name, partition, holders, loop }) => [
    ...rise(partition === null ? [] : [partition.of], name),
    ...holders.map((holder) => ({ lower: name, upper: holder })),
    ...rise(loop === null || loop.on === null ? [] : [loop.on], name),
  ])

/** A set visits what is added while it is walked, so that cycles end. */
function spread(names: readonly string[], next: (name: string) => readonly string[]) {
  const reached = new Set(names)
  for (const name of reached) for (const further of next(name)) reached.add(further)
  return reached
}

/** `process` null: our own. */
export interface MountTable {
  readonly process: number | null
  readonly mounts: readonly Mount[]
}

export interface Members {
  readonly id: string
  readonly devices: readonly string[]
}

interface MountFacts {
  /** `major:minor` to the kernel's name. */
  readonly byDev: ReadonlyMap<string, string>
  readonly bySource: ReadonlyMap<string, string>
  readonly btrfs: readonly Members[]
  readonly zfs: readonly Members[]
}

/** bcachefs joins several with colons. */
const listSources = ({ source }: Mount): readonly string[] =>
  source.startsWith('/dev/')
    ? [source, ...source.split(':').slice(source.includes(':') ? 0 : 1)]
    : []

function listNamed(facts: MountFacts, mount: Mount): readonly string[] {
  const own = facts.byDev.get(mount.dev)
  if (own !== undefined) return [own]
  return listSources(mount).flatMap((source) => facts.bySource.get(source) ?? [])
}

/** Those named, their fellow members, an overlay's layers. */
function listHosts(facts: MountFacts, mount: Mount, mounts: readonly Mount[]): readonly string[] {
  const seen = new Set([mount])
  for (const each of seen) {
    for (const folder of parseOverlayFolders(each)) {
      const layer = findMount(mounts, folder)
      if (layer !== null) seen.add(layer)
    }
  }
  return [...seen].flatMap((each) => withMembers(facts, each))
}

function withMembers(facts: MountFacts, mount: Mount): readonly string[] {
  const named = listNamed(facts, mount)
  const [pool = ''] = mount.source.split('/')
  return [
    ...named,
    ...facts.btrfs.flatMap(({ devices }) =>
      mount.fstype === 'btrfs' && devices.some((name) => named.includes(name)) ? devices : [],
    ),
    ...facts.zfs.flatMap(({ id, devices }) =>
      mount.fstype === 'zfs' && id === pool ? devices : [],
    ),
  ]
}

const SYSTEM_POINT =
  /^\/(usr|efi|cdrom|nix\/store|boot(\/.*)?|run\/(live|initramfs|archiso)(\/.*)?|lib\/live\/.*)?$/
/** With a root on no device, such mounts are the system. */
const LIVE_TYPES = ['squashfs', 'erofs', 'iso9660']

function listSystem(facts: MountFacts, tables: readonly MountTable[]): readonly string[] {
  return tables.flatMap(({ mounts }) => {
    const root = mounts.findLast(({ point }) => point === '/')
    const isLiveSystem = root === undefined || listNamed(facts, root).length === 0
    return mounts
      .filter(
        ({ point, fstype }) =>
          SYSTEM_POINT.test(point) || (isLiveSystem && LIVE_TYPES.includes(fstype)),
      )
      .flatMap((mount) => listHosts(facts, mount, mounts))
  })
}

/** One line of /proc/PID/mountinfo. */
interface Mount {
  readonly id: number
  /** `major:minor`; of no device for btrfs, overlay, tmpfs and network ones. */
  readonly dev: string
  readonly point: string
  readonly fstype: string
  /** Often a device node; whatever the mounter called it. */
  readonly source: string
  /** `key` or `key=value`. */
  readonly options: readonly string[]
}

/**
 * Skips lines of another shape. Only blanks and newlines are escaped by the kernel; other white
 * space stands in mount points as it is.
 */
export function parseMountinfo(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => {
    const fields = line.split(' ')
    const dash = fields.indexOf('-', 6)
    const [id = '', , dev = '', , point = ''] = fields
    if (dash < 0 || !/^\d{1,10}$/.test(id) || !/^\d{1,10}:\d{1,10}$/.test(dev)) return []
    const [fstype = '', source = '', ...options] = fields.slice(dash + 1)
    return {
      id: Number(id),
      dev,
      point: unescapeOctal(point),
      fstype: unescapeOctal(fstype),
      source: unescapeOctal(source),
      options: options.join(' ').split(',').map(unescapeOctal),
    }
  })
}

/** Paths of devices; swap files are left out. */
export function parseSwaps(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const [path = '', type] = line.split(/[ \t]+/)
    return type === 'partition' ? [unescapeOctal(path).replace(/ \(deleted\)$/, '')] : []
  })
}

/** The longest point that holds the path, the last on a tie. */
export function findMount(mounts: readonly Mount[], path: string): Mount | null {
  return mounts.reduce<Mount | null>((best, mount) => {
    const covers = mount.point === '/' || path === mount.point || path.startsWith(`${mount.point}/`)
    return covers && mount.point.length >= (best?.point.length ?? 0) ? mount : best
  }, null)
}

/** Lower ones, the upper one, the work folder. */
export function parseOverlayFolders({ fstype, options }: Mount): readonly string[] {
  if (fstype !== 'overlay') return []
  return options.flatMap((option) => {
    const [, key, value = ''] =
      /^(lowerdir\+?|datadir\+|upperdir|workdir)=(.*)$/s.exec(option) ?? []
    if (key === undefined) return []
    const folders = key === 'lowerdir' ? value.split(/(?<!\\):+/) : [value]
    return folders.map((folder) => folder.replaceAll(/\\(.)/gs, '$1')).filter(Boolean)
  })
}

/** `\040` and the like are bytes, which together may be UTF-8. */
const unescapeOctal = (text: string) =>
  text.replaceAll(/(?:\\[0-3][0-7]{2})+/g, (run) =>
    Buffer.from(
      run
        .split('\\')
        .slice(1)
        .map((digits) => Number.parseInt(digits, 8)),
    ).toString('utf8'),
  )

// Parses which loop devices are offered as disks, for trying a program out.

type Loops = 'none' | 'all' | readonly string[]

/** Empty or `0` is none, `1` is all, else paths separated by blanks. */
export function parseLoops(text: string): Loops {
  if (text === '' || text === '0') return 'none'
  return text === '1' ? 'all' : text.split(' ')
}

export const isOffered = (loops: Loops, path: string) => loops === 'all' || loops.includes(path)
