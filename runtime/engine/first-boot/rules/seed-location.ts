/** Decides where on an image the first-boot configuration goes, and renders what is written there. */
import { listHashed, type SeenPartition } from '#engine/disk/rules/file-systems.ts'
import type { FilledVolume } from '#engine/disk/rules/lsblk.ts'
import { parsePartitions, type Partition } from '#engine/disk/rules/partition-tables.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { FirstBoot } from './seed.ts'

/** Paths have no leading slash. */
export type SeedLocation =
  /** The root file system is in one of these. */
  | { readonly kind: 'cloud-init'; readonly partitions: readonly Partition[] }
  | {
      readonly kind: 'ignition'
      readonly partition: Partition
      readonly folder: string
      readonly file: string
    }

/** Until everything else is on the medium. */
interface HeldBack {
  readonly headBytes: number
  readonly tailStart: number
}

const IGNITION_SYSTEMS = [
  { names: ['USR-A', 'OEM', 'ROOT'], partition: 'OEM', folder: '', file: 'config.ign' },
  {
    names: ['EFI-SYSTEM', 'boot', 'root'],
    partition: 'boot',
    folder: 'ignition',
    file: 'config.ign',
  },
] as const

const LINUX_TYPES: ReadonlySet<string> = new Set([
  '0fc63daf-8483-4772-8e79-3d69d8477de4', // Linux file system
  '4f68bce3-e8cd-4db1-96e7-fbcaf984b709', // root, x86-64
  'b921b045-1df0-41c3-af44-4c6f280d3fae', // root, arm64
  '4d21b016-b534-45c2-a9fb-5c16e091fd2d', // /var
  'ebd0a0a2-b9e5-4433-87c0-68b6b72699c7', // "basic data", by older partitioners
  '0x83',
])

/** `head`: the image's first MiB. Refused in words, as by `decideSeedLocation`. */
export function planSeed(
  head: Buffer,
  { sectorBytes, ...held }: HeldBack & { readonly sectorBytes: number },
  firstBoot: FirstBoot,
): Result<{ readonly location: SeedLocation; readonly partitions: readonly Partition[] }, string> {
  const partitions = parsePartitions(head, sectorBytes)
  if (!partitions.ok) {
    return refuse(
      partitions.refusal === 'no-table'
        ? 'the image has no partition table'
        : 'the partition table of the image is damaged',
    )
  }
  const location = decideSeedLocation(partitions.value, held, firstBoot)
  if (!location.ok) return location
  const preferred =
    location.value.kind === 'cloud-init' ? findPreferred(head, partitions.value, held) : null
  if (preferred !== null) return refuse(preferred)
  return accept({ location: location.value, partitions: partitions.value })
}

/** What hides a seed in the root file system, or must not be written to; null: nothing. */
export function findSeedObstacle(partitions: readonly SeenPartition[]): string | null {
  if (partitions.some(({ first }) => isCidata(first))) return CIDATA_PREFERRED
  const hashed = listHashed(partitions).find(({ type }) => LINUX_TYPES.has(type))
  return hashed === undefined ? null : `${nameOf(hashed)} ${UNDER_VERITY}`
}

export function findVolumeObstacle(volumes: readonly FilledVolume[]): string | null {
  if (volumes.some(isPreferred)) return CIDATA_PREFERRED
  const hashes = volumes.find(({ contents }) => contents.type === 'DM_verity_hash')
  return hashes === undefined ? null : `${hashes.node} holds the hashes of what ${UNDER_VERITY}`
}

const isPreferred = ({ contents: { type, label } }: FilledVolume) =>
  ['vfat', 'iso9660'].includes(type ?? '') && label?.toLowerCase() === 'cidata'

const UNDER_VERITY = 'is protected by dm-verity: a file written to it would keep it from booting'

/** cloud-init might read another seed in what is held back until the end. */
function findPreferred(
  head: Buffer,
  partitions: readonly Partition[],
  { tailStart }: HeldBack,
): string | null {
  const inHead = partitions.filter(({ offset }) => offset < head.length)
  if (inHead.some(({ offset, bytes }) => isCidata(head.subarray(offset, offset + bytes)))) {
    return CIDATA_PREFERRED
  }
  const inTail = partitions.find(({ offset }) => offset >= tailStart)
  return inTail === undefined
    ? null
    : `${nameOf(inTail)} begins in the last MiB of the disk, and cloud-init might prefer it`
}

/**
 * Before anything is written. Refused: no place for it, or one in what is held back, where it could
 * not be written before the disk can boot.
 */
export function decideSeedLocation(
  partitions: readonly Partition[],
  held: HeldBack,
  firstBoot: FirstBoot,
): Result<SeedLocation, string> {
  const system = IGNITION_SYSTEMS.find(({ names }) =>
    names.every((name) => partitions.some((partition) => partition.name === name)),
  )
  const partition = partitions.find(({ name }) => name === system?.partition)
  if (system !== undefined && partition !== undefined) {
    if (firstBoot.ignition === null)
      return refuse(`it cannot be rendered for Ignition: ${firstBoot.reason}`)
    const { folder, file } = system
    return check([partition], held, { kind: 'ignition', partition, folder, file })
  }
  if (firstBoot.cloudInit === null)
    return refuse(`it cannot be rendered for cloud-init: ${firstBoot.reason}`)
  const linux = partitions.filter(({ type }) => LINUX_TYPES.has(type))
  if (linux.length === 0) {
    return refuse('the partition table of the image has no partition with a Linux root file system')
  }
  return check(linux, held, { kind: 'cloud-init', partitions: linux })
}

function check(
  partitions: readonly Partition[],
  held: HeldBack,
  location: SeedLocation,
): Result<SeedLocation, string> {
  for (const partition of partitions) {
    const end = touchedEnd(partition, held)
    if (end !== null) {
      return refuse(`${nameOf(partition)} ${end}, which is written last`)
    }
  }
  return accept(location)
}

const nameOf = ({ number, name }: Partition) =>
  `partition ${number}${name === '' ? '' : ` (${printable(name)})`}`

function touchedEnd(
  { offset, bytes }: Partition,
  { headBytes, tailStart }: HeldBack,
): string | null {
  if (offset < headBytes) return 'begins in the first MiB of the disk'
  return offset + bytes > tailStart ? 'reaches into the last MiB of the disk' : null
}

// Recognises the volumes that cloud-init prefers to a seed in the root file system, by their first bytes.

const LABELS = [
  { mark: 'FAT32', markAt: 82, labelAt: 71, bytes: 11 },
  { mark: 'FAT', markAt: 54, labelAt: 43, bytes: 11 },
  { mark: 'CD001', markAt: 0x8001, labelAt: 0x8028, bytes: 32 },
] as const

export function isCidata(first: Buffer): boolean {
  const read = (at: number, bytes: number) => first.toString('latin1', at, at + bytes)
  const found = LABELS.find(({ mark, markAt }) => read(markAt, mark.length) === mark)
  return found !== undefined && read(found.labelAt, found.bytes).trim().toLowerCase() === 'cidata'
}

const CIDATA_PREFERRED =
  'the image has a partition labelled CIDATA, which cloud-init reads instead of a seed in its root file system'

/** Files are merged in order of names: the later one counts. */
export const CONFIG_FOLDER = 'etc/cloud/cloud.cfg.d'
/** Settings of `ds-identify`, which decides whether cloud-init starts at all. */
export const IDENTIFY_FILE = 'etc/cloud/ds-identify.cfg'
/** cloud-init then trusts what it found at an earlier boot, and looks for no seed. */
export const TRUST_MARK = 'var/lib/cloud/instance/manual-clean'

export interface CloudConfig {
  /** `/etc/cloud/cloud.cfg` and its folder, in the order of merging; no leading slash. */
  readonly files: readonly { readonly path: string; readonly text: string }[]
  /** Empty: there is none. */
  readonly identify: string
  readonly hasTrustMark: boolean
}

interface OwnFile {
  readonly name: string
  readonly content: string
  readonly note: string
}

const CONTENT = `# Written by flasher with the seed in /var/lib/cloud/seed, so that cloud-init reads it.
datasource_list: [NoCloud, None]
datasource:
  NoCloud:
    fs_label: null
    seedfrom: null
manual_cache_clean: false
`
/** The second one comes behind all names in use. */
const NAMES = ['99-flasher.cfg', 'zzzz-flasher.cfg'] as const

/** cloud-init and ds-identify read this list. */
const SEED_FIRST = /^datasource_list:\s+\[\s*["']?NoCloud["']?\s*(,[^\]]*)?\]\s*$/
/** Each may have cloud-init read something else than the seed. */
const HIDING = ['fs_label', 'seedfrom', 'manual_cache_clean'] as const
/** With these the files are not merged in their order alone. */
const MERGING = /\b(merge_how|merge_type|conf_d)\b/

/** Null: cloud-init surely reads the seed. Refused where a file of ours would not help. */
export function decideOwnFile({
  files,
  identify,
  hasTrustMark,
}: CloudConfig): Result<OwnFile | null, string> {
  const others = files
    .filter(({ path }) => !NAMES.some((name) => path === `${CONFIG_FOLDER}/${name}`))
    .map(({ path, text }) => ({ path, text: dropComments(text) }))
  const text = others.map((file) => file.text).join('\n')
  const refusal = findRefusal(text, dropComments(identify), hasTrustMark)
  if (refusal !== null) return refuse(refusal)
  const listed = others.findLast((file) => file.text.includes('datasource_list'))
  const hiding = HIDING.flatMap((key) => {
    const found = others.findLast((file) => file.text.includes(key))
    return found === undefined ? [] : [`${key} in /${found.path}`]
  })
  const isHidden = listed !== undefined && !isSeedFirst(listed.text)
  const why = isHidden ? [`datasource_list in /${listed.path}`, ...hiding] : hiding
  if (why.length === 0) return accept(null)
  if (MERGING.test(text)) {
    return refuse(`cloud-init would not look for the seed (${render(why)})`)
  }
  const isLast = others.every(({ path }) => path < `${CONFIG_FOLDER}/${NAMES[0]}`)
  const name = NAMES[isLast ? 0 : 1]
  const note = `cloud-init would not have looked for the seed (${render(why)}); /${CONFIG_FOLDER}/${name} with datasource_list: [NoCloud, None] makes it do so`
  return accept({ name, content: CONTENT, note })
}

const render = (why: readonly string[]) => printable(why.join(', '))

function findRefusal(text: string, identify: string, hasTrustMark: boolean): string | null {
  const [, source = 'NoCloud'] = /^\s*datasource:\s*(\S+)/m.exec(identify) ?? []
  if (source !== 'NoCloud') {
    return `/${IDENTIFY_FILE} names the data source ${printable(source)}, so cloud-init looks for no seed`
  }
  if (/^\s*policy:\s*disabled/m.test(identify)) {
    return `the policy in /${IDENTIFY_FILE} switches cloud-init off, whatever the data source`
  }
  if (hasTrustMark) {
    return `/${TRUST_MARK} has cloud-init trust the data source of an earlier boot, so it looks for no seed`
  }
  return /["']?user-data["']?\s*:/.test(text) && /["']?meta-data["']?\s*:/.test(text)
    ? 'the configuration of the image already has user-data for the data source NoCloud, which overrides a seed'
    : null
}

const isSeedFirst = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.includes('datasource_list'))
    .every((line) => SEED_FIRST.test(line))

const dropComments = (text: string) => text.replaceAll(/(^|\s)#.*$/gm, '$1')
