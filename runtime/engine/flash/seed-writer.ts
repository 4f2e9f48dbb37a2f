/** Finds a place for a first-boot configuration in an image, and writes it there on a disk that cannot boot yet. */
import {
  findSeedObstacle,
  planSeed,
  type SeedLocation,
} from '#engine/first-boot/rules/seed-location.ts'
import type { CloudInitSeed, FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { parsePartitions } from '#engine/disk/rules/partition-tables.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { FlashPlan } from './rules/flash-plan.ts'
import type { Device } from '#engine/disk/device.ts'
import {
  checkMountPlace,
  type MountTools,
  mountVolume,
  readImageStarts,
} from '#engine/disk/mounts.ts'
import { locateEnds } from '#engine/disk/rules/extents.ts'
import { openPartVolumes } from '#engine/disk/loop-part.ts'
import { existsInside, writeInside } from '#engine/disk/mounted-tree.ts'
import type { FlashedDisk } from '#engine/disk/volumes.ts'
import { needTools } from '#kit/host/shell.ts'
import type { Decoders } from '#engine/image/formats.ts'
import { inspectImage, type ImageInspection } from '#engine/image/image-inspection.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { readBack, refuseObstacle, writeSeed, type SeedOutcome } from './seeder.ts'

const TOOLS = 'blkid blockdev losetup mount umount nsenter setsid unshare'.split(' ')

/** Read at the stage before the network, unlike `nocloud-net`. */
const SEED_FOLDER = 'var/lib/cloud/seed/nocloud'
/** May hold secrets; both programs read it as root. */
const MODE = 0o600
/** The mark in the boot partition of a Fedora CoreOS that was never booted. */
const NEVER_BOOTED = 'ignition.firstboot'

interface WorkOptions {
  readonly device: Device
  /** Whether what is written is read back from the medium. */
  readonly verifies: boolean
  readonly signal: AbortSignal
  /** Hears what a person should know of it. */
  readonly warn: ((words: string) => void) | undefined
}

/** Work between the write of an image and that of its first and its last MiB. */
export interface BeforeEnds {
  /**
   * Looks at the image's first MiB before the disk is touched, and returns the work. Throws a Fault
   * `plan-refused` where the work cannot be done.
   */
  plan(
    head: Buffer,
    disk: Pick<Device, 'sizeBytes' | 'sectorBytes'>,
  ): (options: WorkOptions) => Promise<void>
}

/** Fault `tool-missing`, or `plan-refused` where nothing can be mounted. */
export async function checkSeedTools(tools: MountTools): Promise<void> {
  await needTools(tools.shell, TOOLS)
  await checkMountPlace(tools)
}

/**
 * Looks into an image, before a disk is touched, whether the configuration has a place in it, or a
 * seed of `--provision` where `firstBoot` is null: why it has none, in words; null where nothing is
 * known against it. A partition that lies too far from the image's beginning is looked at once it is
 * written, as is all of standard input.
 */
export const findSeedProblem = (
  { decoders }: { readonly decoders: Decoders },
  source: Source,
  plan: FlashPlan,
  firstBoot: FirstBoot | null,
  signal: AbortSignal,
): Promise<string | null> =>
  inspectImage(decoders, { source, plan }, signal, (image) => inspect(image, plan, firstBoot))

async function inspect(
  image: ImageInspection,
  { target: { identity, sectorBytes } }: FlashPlan,
  firstBoot: FirstBoot | null,
): Promise<string | null> {
  const { head } = image
  if (firstBoot === null) {
    const listed = parsePartitions(head, sectorBytes)
    return listed.ok ? findSeedObstacle(await readImageStarts(image, listed.value)) : null
  }
  const planned = planSeed(head, { ...locateEnds(identity.sizeBytes), sectorBytes }, firstBoot)
  if (!planned.ok) return planned.refusal
  const { location, partitions } = planned.value
  if (location.kind !== 'cloud-init') return null
  return findSeedObstacle(await readImageStarts(image, partitions))
}

export const createSeedWriter = (tools: MountTools, firstBoot: FirstBoot): BeforeEnds => ({
  plan(head, { sizeBytes, sectorBytes }) {
    const planned = planSeed(head, { ...locateEnds(sizeBytes), sectorBytes }, firstBoot)
    if (!planned.ok) {
      throw new Fault(
        'plan-refused',
        `the first-boot template cannot be written: ${planned.refusal}`,
        { hint: 'Use another image, a larger disk, or no template for this machine.' },
      )
    }
    const { location, partitions } = planned.value
    return async (options) => {
      options.signal.throwIfAborted()
      if (location.kind === 'cloud-init') await refuseObstacle(options.device, partitions)
      await writeFirstBoot(tools, location, firstBoot, options)
    }
  },
})

async function writeFirstBoot(
  tools: MountTools,
  location: SeedLocation,
  { cloudInit, ignition }: FirstBoot,
  { device, verifies, signal, warn }: WorkOptions,
): Promise<void> {
  const partitions = location.kind === 'ignition' ? [location.partition] : location.partitions
  await using disk = await openPartVolumes(tools.shell, device, partitions)
  const seed = { folder: SEED_FOLDER, files: listFiles(cloudInit) }
  const { written, note } =
    location.kind === 'ignition'
      ? await writeIgnition(tools, location, disk, ignition ?? '')
      : await writeSeed(tools, seed, device.node, disk, signal)
  if (verifies) await readBack(tools, device.node, written)
  if (note !== null) warn?.(note)
}

const listFiles = (seed: CloudInitSeed | null) =>
  Object.entries(seed ?? {}).flatMap(([name, text]: [string, string | null | undefined]) =>
    typeof text === 'string' ? [{ name, content: Buffer.from(text) }] : [],
  )

async function writeIgnition(
  tools: MountTools,
  { folder, file, partition }: Extract<SeedLocation, { kind: 'ignition' }>,
  { volumes }: FlashedDisk,
  text: string,
): Promise<SeedOutcome> {
  const [volume] = volumes
  const named = `partition ${partition.number} (${partition.name})`
  if (volume === undefined) throw new Fault('provision-failed', `${named}: it is not there`)
  const mounted = await mountVolume(tools, volume, null, 'write')
  if (!mounted.ok) throw new Fault('provision-failed', `${named}: ${mounted.refusal}`)
  await using tree = mounted.value
  if (partition.name === 'boot' && !(await existsInside(tree.root, NEVER_BOOTED))) {
    throw new Fault(
      'provision-failed',
      `${named} has no /${NEVER_BOOTED}: the image was booted before, so Ignition would not run`,
    )
  }
  const content = Buffer.from(text)
  await writeInside(tree.root, { folder, name: file, content, mode: MODE })
  await tree.sync()
  const path = folder === '' ? file : `${folder}/${file}`
  return { written: [{ volume, subvolume: null, files: [{ path, content }] }], note: null }
}
