/** Writes a first-boot configuration into an image that lies on a disk which cannot boot yet. */
import { Fault } from '../../core/foundation/fault.ts'
import { parsePartitions } from '../../core/disk/partitions.ts'
import { decideSeedPlace, type SeedPlace } from '../../core/first-boot/place.ts'
import type { CloudInitSeed, FirstBoot } from '../../core/first-boot/seed.ts'
import { locateEnds } from '../disk/disk-ends.ts'
import type { Device } from '../disk/device.ts'
import { existsInside, writeInside } from '../disk/mounted-tree.ts'
import type { MountTools } from '../disk/mounts.ts'
import { openPartitionLoops } from '../disk/partition-loops.ts'
import { mountVolume } from '../disk/root-file-systems.ts'
import type { FlashedDisk } from '../disk/volumes.ts'
import { toolMissing } from '../host/shell.ts'
import { writeSeed } from './seeder.ts'

const TOOLS = ['blkid', 'losetup', 'mount', 'umount', 'nsenter', 'setsid', 'unshare']

/** Read at the stage before the network, unlike `nocloud-net`. */
const SEED_FOLDER = 'var/lib/cloud/seed/nocloud'
/** May hold secrets; both programs read it as root. */
const MODE = 0o600
/** In the boot partition of a Fedora CoreOS that was never booted. */
const NEVER_BOOTED = 'ignition.firstboot'

type DiskFacts = Pick<Device, 'node' | 'sizeBytes' | 'sectorBytes'>

/** Work between the write of an image and that of its first and its last MiB. */
export interface BeforeEnds {
  /**
   * Called with the image's first MiB before the disk is touched; returns the work. A Fault
   * `plan-refused` where the work cannot be done.
   */
  plan(head: Buffer, disk: DiskFacts): (signal: AbortSignal) => Promise<void>
}

/** Fault `tool-missing`. */
export async function checkSeedTools({ shell }: MountTools): Promise<void> {
  for (const tool of TOOLS) if (!(await shell.has(tool))) throw toolMissing(tool)
}

export const createSeedWriter = (tools: MountTools, firstBoot: FirstBoot): BeforeEnds => ({
  plan(head, disk) {
    const place = planPlace(head, disk, firstBoot)
    return (signal) => writeFirstBoot(tools, { place, disk, firstBoot }, signal)
  },
})

function planPlace(head: Buffer, { sizeBytes, sectorBytes }: DiskFacts, firstBoot: FirstBoot) {
  const partitions = parsePartitions(head, sectorBytes)
  if (!partitions.ok) {
    throw planRefused(
      partitions.refusal === 'no-table'
        ? 'the image has no partition table'
        : 'the partition table of the image is damaged',
    )
  }
  const place = decideSeedPlace(partitions.value, locateEnds(sizeBytes), firstBoot)
  if (!place.ok) throw planRefused(place.refusal)
  return place.value
}

const planRefused = (reason: string) =>
  new Fault('plan-refused', `the first-boot template cannot be written: ${reason}`, {
    hint: 'Use another image, a larger disk, or no template for this machine.',
  })

interface SeedOrder {
  readonly place: SeedPlace
  readonly disk: DiskFacts
  readonly firstBoot: FirstBoot
}

async function writeFirstBoot(
  tools: MountTools,
  { place, disk, firstBoot }: SeedOrder,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted()
  const partitions = place.kind === 'ignition' ? [place.partition] : place.partitions
  await using opened = await openPartitionLoops(tools.shell, disk, partitions)
  if (place.kind === 'ignition') await writeIgnition(tools, place, opened, firstBoot.ignition ?? '')
  else if (firstBoot.cloudInit !== null) {
    refuseLabelled(opened)
    const seed = { folder: SEED_FOLDER, files: listFiles(firstBoot.cloudInit) }
    await writeSeed(tools, seed, disk.node, opened, signal)
  }
}

const listFiles = (seed: CloudInitSeed) =>
  Object.entries(seed).flatMap(([name, text]: [string, string | null]) =>
    text === null ? [] : [{ name, content: Buffer.from(text) }],
  )

/** cloud-init prefers such a partition to what lies in the root file system. */
function refuseLabelled({ volumes }: FlashedDisk): void {
  if (volumes.every(({ contents }) => contents.label?.toLowerCase() !== 'cidata')) return
  throw new Fault(
    'provision-failed',
    'the image has a partition labelled CIDATA, which cloud-init reads instead of a seed in its root file system',
  )
}

async function writeIgnition(
  tools: MountTools,
  { folder, file, partition }: Extract<SeedPlace, { kind: 'ignition' }>,
  { volumes }: FlashedDisk,
  text: string,
): Promise<void> {
  const [volume] = volumes
  const named = `partition ${partition.number} (${partition.name})`
  const mounted = volume === undefined ? null : await mountVolume(tools, volume, null, 'write')
  if (mounted === null || !mounted.ok) {
    throw new Fault('provision-failed', `${named}: ${mounted?.refusal ?? 'it is not there'}`)
  }
  await using tree = mounted.value
  if (partition.name === 'boot' && !(await existsInside(tree.root, NEVER_BOOTED))) {
    throw new Fault(
      'provision-failed',
      `${named} has no /${NEVER_BOOTED}: the image was booted before, so Ignition would not run`,
    )
  }
  await writeInside(tree.root, { folder, name: file, content: Buffer.from(text), mode: MODE })
  await tree.sync()
}
