/** Finds everything that uses a disk or a part of it, from facts about the whole machine. */
import {
  listAbove,
  listAboveWhole,
  listBelow,
  listOverlapping,
  type BlockGraph,
} from './block-graph.ts'
import type { DiskUse } from './disk.ts'
import { listNamed, type Members, type MountFacts, type MountTable } from './mount-map.ts'

export interface UseFacts extends MountFacts {
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
