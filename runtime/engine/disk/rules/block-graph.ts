/** The graph of block devices built on each other: partitions, device-mapper, RAID, loops. */

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

export type BlockGraph = ReadonlyMap<string, BlockNode>

/** A loop's file counts only downwards: upwards the mounted file system is reason enough. */
export function listAbove(graph: BlockGraph, names: readonly string[]): ReadonlySet<string> {
  const above = Map.groupBy(listEdges(graph), ({ lower }) => lower)
  return spread(names, (name) => (above.get(name) ?? []).map(({ upper }) => upper))
}

export function listBelow(graph: BlockGraph, names: readonly string[]): ReadonlySet<string> {
  const files = [...graph.values()].flatMap(({ name, loop }) => rise(loop?.fileOn ?? [], name))
  const below = Map.groupBy([...listEdges(graph), ...files], ({ upper }) => upper)
  return spread(names, (name) => (below.get(name) ?? []).map(({ lower }) => lower))
}

/** The disk and all built on it, but not on a partition of it. */
export function listAboveWhole(graph: BlockGraph, disk: string): ReadonlySet<string> {
  const direct = listEdges(graph)
    .filter(({ lower, upper }) => lower === disk && graph.get(upper)?.partition?.of !== disk)
    .map(({ upper }) => upper)
  return new Set([disk, ...listAbove(graph, direct)])
}

export function listOverlapping(graph: BlockGraph, name: string): readonly string[] {
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
