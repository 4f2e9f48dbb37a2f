/** Combines what /sys, /proc and lsblk report about a machine's block devices. */
import { listAbove, type BlockGraph, type SysBlock } from './block-graph.ts'
import type { UseFacts } from './disk-uses.ts'
import type { LsblkNode } from './lsblk.ts'
import {
  listHosts,
  listSources,
  listSystem,
  type Members,
  type MountFacts,
  type MountTable,
} from './mount-map.ts'
import type { PoolMember } from './zpool.ts'

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
