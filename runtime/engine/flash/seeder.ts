/** Writes a cloud-init seed to the root file system of a disk that was just flashed, and reads it back. */
import { Fault } from '../../kit/foundation/fault.ts'
import { decideVolumeFolder, parseFstab, type VolumeFolder } from '../disk/rules/fstab.ts'
import {
  CLOUD_INIT_MARK,
  CLOUD_INIT_SWITCHED_OFF,
  findFolderReadFirst,
  renderExaminations,
  SEED_FILES,
  type Examination,
} from './rules/provisioning.ts'
import { notWhatWasWritten } from '../disk/device.ts'
import { existsInside, isFolderInside, readInside, writeInside } from '../disk/mounted-tree.ts'
import type { MountTools } from '../disk/mounts.ts'
import { findRoot, mountVolume, type Root } from '../disk/root-file-systems.ts'
import { nameOf, type FilledVolume } from '../disk/rules/volume.ts'
import type { FlashedDisk } from '../disk/volumes.ts'

/** What is written, and where cloud-init looks for it. */
export interface Seed {
  /** The folder, without a leading slash. */
  readonly folder: string
  readonly files: readonly { readonly name: string; readonly content: Buffer }[]
}

/** Where a seed was written, to be read back. */
export interface WrittenSeed {
  readonly volume: FilledVolume
  readonly subvolume: string | null
  readonly files: readonly { readonly path: string; readonly content: Buffer }[]
}

const MAX_FSTAB_BYTES = 2 ** 16
/** May hold passwords; cloud-init reads it as root. */
const SEED_MODE = 0o600

/** Fault `provision-failed` where no volume holds a cloud-init that would read the seed. */
export async function writeSeed(
  tools: MountTools,
  seed: Seed,
  node: string,
  disk: FlashedDisk,
  signal?: AbortSignal,
): Promise<WrittenSeed> {
  const examinations: Examination[] = []
  for (const volume of disk.volumes) {
    signal?.throwIfAborted()
    const refused = disk.refused.get(volume.node)
    const found = refused === undefined ? await findRoot(tools, volume, see) : null
    if (found?.ok === true) {
      signal?.throwIfAborted()
      return write(tools, chooseFolder(found.value, disk, seed), seed)
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

/**
 * Reads a seed back from the medium; a Fault where it is not there. What the kernel remembers of the volume and
 * of the disk is given up first.
 */
export async function readBack(
  tools: MountTools,
  node: string,
  { volume, subvolume, files }: WrittenSeed,
): Promise<void> {
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

async function write(
  tools: MountTools,
  location: VolumeFolder,
  { files }: Seed,
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
      await writeInside(mounted.root, { ...file, folder, mode: SEED_MODE })
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
  }
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
