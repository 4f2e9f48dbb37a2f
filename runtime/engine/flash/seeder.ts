/** Writes a cloud-init seed to the root file system of a disk that was just flashed, and reads it back. */
import { Fault } from '#kit/foundation/fault.ts'
import {
  type CloudConfig,
  CONFIG_FOLDER,
  decideOwnFile,
  findSeedObstacle,
  IDENTIFY_FILE,
  TRUST_MARK,
} from '#engine/first-boot/rules/seed-location.ts'
import { decideVolumeFolder, parseFstab, type VolumeFolder } from '#engine/disk/rules/mount.ts'
import {
  CLOUD_INIT_MARK,
  CLOUD_INIT_SWITCHED_OFF,
  findFolderReadFirst,
  renderExaminations,
  SEED_FILES,
  type Examination,
} from './rules/provisioning.ts'
import { notWhatWasWritten, type Device } from '#engine/disk/device.ts'
import {
  findRoot,
  type MountTools,
  mountVolume,
  readDeviceStarts,
  type Root,
} from '#engine/disk/mounts.ts'
import type { Partition } from '#engine/disk/rules/partition-tables.ts'
import {
  existsInside,
  isFolderInside,
  listInside,
  readInside,
  writeInside,
} from '#engine/disk/mounted-tree.ts'
import { type FilledVolume, nameOf } from '#engine/disk/rules/lsblk.ts'
import type { FlashedDisk } from '#engine/disk/volumes.ts'

/** What is written, and where cloud-init looks for it. */
export interface Seed {
  /** The folder, without a leading slash. */
  readonly folder: string
  readonly files: readonly SeedFile[]
}

interface SeedFile {
  readonly name: string
  readonly content: Buffer
  /** Absent: SEED_MODE. */
  readonly mode?: number
}

/** Where a seed was written, to be read back. */
interface WrittenSeed {
  readonly volume: FilledVolume
  readonly subvolume: string | null
  readonly files: readonly { readonly path: string; readonly content: Buffer }[]
}

const MAX_FSTAB_BYTES = 2 ** 16
const MAX_CONFIG_BYTES = 2 ** 20
/** May hold passwords; cloud-init reads it as root. */
const SEED_MODE = 0o600
/** ds-identify and people read it. */
const CONFIG_MODE = 0o644

export interface SeedOutcome {
  readonly written: readonly WrittenSeed[]
  /** What else had to be written, and why, in words; null: nothing. */
  readonly note: string | null
}

/** Fault `provision-failed` where no volume holds a cloud-init that would read the seed. */
export async function writeSeed(
  tools: MountTools,
  seed: Seed,
  node: string,
  disk: FlashedDisk,
  signal?: AbortSignal,
): Promise<SeedOutcome> {
  const examinations: Examination[] = []
  for (const volume of disk.volumes) {
    signal?.throwIfAborted()
    const refused = disk.refused.get(volume.node)
    const found = refused === undefined ? await findRoot(tools, volume, see) : null
    if (found?.ok === true) {
      signal?.throwIfAborted()
      return writeBeside(tools, found.value, disk, seed)
    }
    const why = refused ?? found?.refusal ?? ''
    examinations.push({ ...volume, node: nameOf(volume), type: volume.contents.type, why })
  }
  throw new Fault(
    'provision-failed',
    `no cloud-init (/${CLOUD_INIT_MARK}) on ${node}; looked at:${renderExaminations(examinations)}`,
    { hint: 'Flash an image that has cloud-init, or use --provision none.' },
  )
}

/** With what has cloud-init read it. */
async function writeBeside(
  tools: MountTools,
  root: Root<Seen>,
  disk: FlashedDisk,
  seed: Seed,
): Promise<SeedOutcome> {
  const location = chooseFolder(root, disk, seed)
  const own = decideOwnFile(root.seen.config)
  if (!own.ok) throw new Fault('provision-failed', own.refusal, { hint: OTHER_IMAGE })
  const written = [await write(tools, location, seed.files)]
  if (own.value !== null) {
    const { name, content } = own.value
    const file = { name, content: Buffer.from(content), mode: CONFIG_MODE }
    written.push(await write(tools, { ...root, folder: CONFIG_FOLDER }, [file]))
  }
  return { written, note: own.value?.note ?? null }
}

const OTHER_IMAGE = 'Change the configuration of cloud-init in the image, or flash another one.'

/** Throws a Fault `provision-failed` for what could not be looked into before it was written. */
export async function refuseObstacle(
  device: Device,
  partitions: readonly Partition[],
): Promise<void> {
  const obstacle = findSeedObstacle(await readDeviceStarts(device, partitions))
  if (obstacle !== null) throw new Fault('provision-failed', obstacle)
}

/**
 * Reads a seed back from the medium; a Fault where it is not there. What the kernel remembers of the volume and
 * of the disk is given up first.
 */
export async function readBack(
  tools: MountTools,
  node: string,
  written: readonly WrittenSeed[],
): Promise<void> {
  for (const { volume, subvolume, files } of written) {
    for (const cached of [volume.node, node]) {
      await tools.shell.require(['blockdev', '--flushbufs', cached])
    }
    const mounted = await mountVolume(tools, volume, subvolume, 'look')
    if (!mounted.ok) throw notWhatWasWritten(node, `in its first-boot files: ${mounted.refusal}`)
    await using tree = mounted.value
    for (const { path, content } of files) {
      // A medium that does not hold a file may fail to read it.
      const found = await readInside(tree.root, path, content.length).catch(() => null)
      if (found !== content.toString()) throw notWhatWasWritten(node, `in /${path}`)
    }
  }
}

async function write(
  tools: MountTools,
  location: VolumeFolder,
  files: readonly SeedFile[],
): Promise<WrittenSeed> {
  const outcome = await mountVolume(tools, location.volume, location.subvolume, 'write')
  if (!outcome.ok)
    throw new Fault('provision-failed', `${nameOf(location.volume)}: ${outcome.refusal}`)
  await using mounted = outcome.value
  const first = findFolderReadFirst(location.folder)
  const others = (await hasSeed(mounted.root, first)) ? [first] : []
  const written = []
  for (const folder of new Set([location.folder, ...others])) {
    for (const file of files) {
      await writeInside(mounted.root, { mode: SEED_MODE, ...file, folder })
      written.push({ path: `${folder}/${file.name}`, content: file.content })
    }
  }
  await mounted.sync()
  return { volume: location.volume, subvolume: location.subvolume, files: written }
}

type Seen = NonNullable<Awaited<ReturnType<typeof see>>>

/** What counts of an image with cloud-init. */
async function see(root: string) {
  if (!(await isFolderInside(root, CLOUD_INIT_MARK))) return null
  return {
    switchedOff: await existsInside(root, CLOUD_INIT_SWITCHED_OFF),
    fstab: (await readInside(root, 'etc/fstab', MAX_FSTAB_BYTES)) ?? '',
    config: await readConfig(root),
  }
}

async function readConfig(root: string): Promise<CloudConfig> {
  const names = await listInside(root, CONFIG_FOLDER)
  const below = names
    .filter((name) => name.endsWith('.cfg'))
    .map((name) => `${CONFIG_FOLDER}/${name}`)
  const files = []
  for (const path of ['etc/cloud/cloud.cfg', ...below]) {
    files.push({ path, text: (await readInside(root, path, MAX_CONFIG_BYTES)) ?? '' })
  }
  const identify = (await readInside(root, IDENTIFY_FILE, MAX_CONFIG_BYTES)) ?? ''
  return { files, identify, hasTrustMark: await existsInside(root, TRUST_MARK) }
}

/** The seed is written only where cloud-init will find it; an unread seed is worse than an error. */
function chooseFolder(
  { volume, subvolume, seen }: Root<Seen>,
  disk: FlashedDisk,
  { folder }: Seed,
): VolumeFolder {
  if (seen.switchedOff) {
    throw new Fault(
      'provision-failed',
      `cloud-init is switched off in the image on ${nameOf(volume)} (/${CLOUD_INIT_SWITCHED_OFF} exists)`,
    )
  }
  const location = decideVolumeFolder(parseFstab(seen.fstab), folder, disk.volumes)
  if (!location.ok) {
    const { point, spec } = location.refusal
    throw new Fault(
      'provision-failed',
      `the image on ${nameOf(volume)} mounts ${point} from ${spec}, which is not on this disk: cloud-init would not see a seed`,
    )
  }
  return location.value ?? { volume, subvolume, folder }
}

async function hasSeed(root: string, folder: string): Promise<boolean> {
  const there = await Promise.all(SEED_FILES.map((name) => existsInside(root, `${folder}/${name}`)))
  return there.every(Boolean)
}
