/** Parses the kernel's tables of mounts and swap in /proc, and finds the block devices below a mounted file system, through overlays and across several devices. */
/** `process` null: our own. */
export interface MountTable {
  readonly process: number | null
  readonly mounts: readonly Mount[]
}

export interface Members {
  readonly id: string
  readonly devices: readonly string[]
}

export interface MountFacts {
  /** `major:minor` to the kernel's name. */
  readonly byDev: ReadonlyMap<string, string>
  readonly bySource: ReadonlyMap<string, string>
  readonly btrfs: readonly Members[]
  readonly zfs: readonly Members[]
}

/** bcachefs joins several with colons. */
export const listSources = ({ source }: Mount): readonly string[] =>
  source.startsWith('/dev/')
    ? [source, ...source.split(':').slice(source.includes(':') ? 0 : 1)]
    : []

export function listNamed(facts: MountFacts, mount: Mount): readonly string[] {
  const own = facts.byDev.get(mount.dev)
  if (own !== undefined) return [own]
  return listSources(mount).flatMap((source) => facts.bySource.get(source) ?? [])
}

/** Those named, their fellow members, an overlay's layers. */
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

const SYSTEM_POINT =
  /^\/(usr|efi|cdrom|nix\/store|boot(\/.*)?|run\/(live|initramfs|archiso)(\/.*)?|lib\/live\/.*)?$/
/** With a root on no device, such mounts are the system. */
const LIVE_TYPES = ['squashfs', 'erofs', 'iso9660']

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

// Parses which loop devices are offered as disks, for trying a program out. Pure.

type Loops = 'none' | 'all' | readonly string[]

/** Empty or `0` is none, `1` is all, else paths separated by blanks. */
export function parseLoops(text: string): Loops {
  if (text === '' || text === '0') return 'none'
  return text === '1' ? 'all' : text.split(' ')
}

export const isOffered = (loops: Loops, path: string) => loops === 'all' || loops.includes(path)
