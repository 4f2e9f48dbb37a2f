/** Finds the block devices below a mounted file system, through overlays and across several devices. */
import { findMount, parseOverlayFolders, type Mount } from './mountinfo.ts'

/** The mounts that one process sees; `process` is null for our own. */
export interface MountTable {
  readonly process: number | null
  readonly mounts: readonly Mount[]
}

/** The devices of one file system or pool, by the kernel's names. */
export interface Members {
  readonly id: string
  readonly devices: readonly string[]
}

export interface MountFacts {
  /** `major:minor` to the kernel's name. */
  readonly byDev: ReadonlyMap<string, string>
  /** Mount sources that are block device nodes, to the kernel's name. */
  readonly bySource: ReadonlyMap<string, string>
  readonly btrfs: readonly Members[]
  readonly zfs: readonly Members[]
}

/** The sources that a mount names: bcachefs joins several with colons. */
export const listSources = ({ source }: Mount): readonly string[] =>
  source.startsWith('/dev/')
    ? [source, ...source.split(':').slice(source.includes(':') ? 0 : 1)]
    : []

/** The devices that the mount itself names. */
export function listNamed(facts: MountFacts, mount: Mount): readonly string[] {
  const own = facts.byDev.get(mount.dev)
  if (own !== undefined) return [own]
  return listSources(mount).flatMap((source) => facts.bySource.get(source) ?? [])
}

/** All devices that hold data of the mount: those named, their fellow members, an overlay's layers. */
export function listHosts(
  facts: MountFacts,
  mount: Mount,
  mounts: readonly Mount[],
): readonly string[] {
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

/** Where systems and live media have what they run from. */
const SYSTEM_POINT =
  /^\/(usr|efi|cdrom|nix\/store|boot(\/.*)?|run\/(live|initramfs|archiso)(\/.*)?|lib\/live\/.*)?$/
/** What live systems keep their files in: with a root on no device, such mounts are the system. */
const LIVE_TYPES = ['squashfs', 'erofs', 'iso9660']

/** The devices that the running system lies on; `tables` are those of the first processes. */
export function listSystem(facts: MountFacts, tables: readonly MountTable[]): readonly string[] {
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
