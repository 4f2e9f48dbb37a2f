/** Writes the seed of `--provision` while the disk cannot boot yet, where its root can be mounted by then. */
import {
  type EndContents,
  type EndPiece,
  planEnds,
  type Range,
} from '#engine/disk/rules/extents.ts'
import type { FlashEvent } from './rules/flash-plan.ts'
import {
  MAX_LOGICAL,
  numberLogical,
  parseLogicalTable,
  type Unnumbered,
} from './rules/last-partition.ts'
import { planEarlySeed } from './rules/provisioning.ts'
import { isPhysicalVolume, PHYSICAL_BYTES } from '#engine/disk/rules/lsblk.ts'
import { type Partition, readIdentity } from '#engine/disk/rules/partition-tables.ts'
import { createSlot, type Device, writeEnds } from '#engine/disk/device.ts'
import { openPartVolumes } from '#engine/disk/loop-part.ts'
import type { MountTools } from '#engine/disk/mounts.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { readBack, refuseObstacle, writeSeed, type Seed } from './seeder.ts'
import type { TaskGroup } from './copier.ts'

interface EarlyOrder {
  readonly device: Device
  readonly ends: EndContents
  /** Whether what is written is read back from the medium. */
  readonly verifies: boolean
  readonly tasks: TaskGroup
  readonly signal: AbortSignal
  readonly warn: ((words: string) => void) | undefined
}

/**
 * It runs when everything but the ends is on the medium. It yields `synced`, `partprobed` and
 * `provisioning` where it writes the seed, and nothing where that has to wait for the ends. It
 * returns what is left of these, to be written next.
 */
export type EarlySeeder = (order: EarlyOrder) => AsyncGenerator<FlashEvent, readonly EndPiece[]>

/** `explain` makes any failure one of this step. */
export const createEarlySeeder = (
  tools: MountTools,
  { seed, mode }: { readonly seed: Seed; readonly mode: string },
  explain: (thrown: unknown, node: string) => Error,
): EarlySeeder =>
  async function* seedEarly({ device, ends, verifies, tasks, signal, warn }) {
    const planned = planEarlySeed(device, ends)
    if (planned === null) return planEnds(device.sizeBytes, ends)
    const { early, held, extended, partitions } = planned
    const looking = inspect(device, { early, verifies, extended, signal })
    tasks.launch(async () => void (await looking))
    const logical = numberLogical(await untilAborted(signal, looking), readIdentity(ends.head))
    const all = [...partitions, ...logical]
    if (await untilAborted(signal, haveLogicalVolumes(device, all))) return held
    yield { event: 'synced' }
    yield { event: 'partprobed' }
    yield { event: 'provisioning', note: mode }
    const writing = write(tools, seed, all, { device, verifies, signal }).catch(
      (thrown: unknown) => {
        throw explain(thrown, device.node)
      },
    )
    // A cancel does not wait for it, but the disk stays open until its tools have ended.
    tasks.launch(async () => void (await writing))
    const note = await untilAborted(signal, writing)
    if (note !== null) warn?.(note)
    return held
  }

interface InspectOptions extends Pick<EarlyOrder, 'verifies' | 'signal'> {
  readonly early: readonly EndPiece[]
  readonly extended: Range | null
}

/** The logical partitions, once all that may hold their tables is on the disk. */
async function inspect(device: Device, { early, verifies, extended, signal }: InspectOptions) {
  await writeEnds(device, early, verifies, signal)
  return extended === null ? [] : await readLogical(device, extended)
}

async function readLogical(device: Device, extended: Range): Promise<readonly Unnumbered[]> {
  const { sectorBytes } = device
  const found: Unnumbered[] = []
  let at: number | null = extended.offset
  for (let tables = 0; at !== null && tables < MAX_LOGICAL; tables += 1) {
    const sector = createSlot(sectorBytes)
    await device.read(sector, at)
    const { partition, next } = parseLogicalTable(sector, at, { extended, sectorBytes })
    if (partition !== null) found.push(partition)
    at = next
  }
  return found
}

/** Logical volumes can only be switched on where the kernel shows what they lie on. */
async function haveLogicalVolumes(
  device: Device,
  partitions: readonly Partition[],
): Promise<boolean> {
  for (const { offset, bytes } of partitions) {
    const first = createSlot(PHYSICAL_BYTES)
    if (bytes < first.length) continue
    await device.read(first, offset)
    if (isPhysicalVolume(first)) return true
  }
  return false
}

/** Returns the note of `writeSeed` once the seed is on the medium and nothing is mounted. */
async function write(
  tools: MountTools,
  seed: Seed,
  partitions: readonly Partition[],
  { device, verifies, signal }: Pick<EarlyOrder, 'device' | 'verifies' | 'signal'>,
): Promise<string | null> {
  await refuseObstacle(device, partitions)
  let note: string | null
  {
    await using disk = await openPartVolumes(tools.shell, device, partitions)
    const seeded = await writeSeed(tools, seed, device.node, disk, signal)
    if (verifies) await readBack(tools, device.node, seeded.written)
    note = seeded.note
  }
  await device.flush()
  return note
}
