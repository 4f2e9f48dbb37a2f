/** Captures a disk into an image in frames: looks at it, then reads what is used, and never writes to it. */
import { access, constants, realpath, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { planAreas, TABLE_BYTES, type Area } from './rules/areas.ts'
import { decideHashing, decideRoom, decideSource } from './rules/capture.ts'
import { createRangeList, type RangeList } from './rules/range-list.ts'
import type { DiskIdentity, TargetDevice } from '#engine/disk/rules/disk.ts'
import { CAPTURING, type WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { Fault, systemCodeOf } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { createSlot, openDevice, type Device } from '#engine/disk/device.ts'
import { createDisks, probeContents } from '#engine/disk/disks.ts'
import { createMeter } from '#engine/flash/meter.ts'
import { readOnce, writeFrames, type WrittenFrames } from '#engine/image/frame/frame-writer.ts'
import { createFrameWorkers } from '#engine/image/frame/frame-workers.ts'
import { createShell, type Environment, type Shell } from '#kit/host/shell.ts'
import { report, untilAborted } from '#kit/host/watch.ts'
import { checkNothingThere, writeWhole } from '#engine/pack/packer.ts'
import {
  createDiskReader,
  type PartArea,
  type PartFindings,
  type Patch,
  readPart,
  readWhole,
  type SeenPart,
  seePart,
} from './part-reading.ts'
import { isOnStick, unlockStick } from '#engine/disk/sticks.ts'

interface CaptureRequest {
  readonly source: string
  /** The disk at `source` when a person chose it; absent or null: nobody looked. */
  readonly chosen?: DiskIdentity | null
  readonly generalize: boolean
}

/** Nobody can mount the disk until this is disposed of. */
export interface OpenedCapture extends AsyncDisposable {
  readonly device: Device
  readonly disk: TargetDevice
  readonly parts: readonly PartFindings[]
  readonly ranges: RangeList
}

/** The disk stays held until the result is disposed of. Rejects with a Fault. */
export async function openCapture(
  { env, isRoot }: { readonly env: Environment; readonly isRoot: boolean },
  { source, chosen = null, generalize }: CaptureRequest,
  signal: AbortSignal,
): Promise<OpenedCapture> {
  const shell = createShell({ env })
  const facts = await untilAborted(signal, createDisks({ shell }).probe(source, null))
  const decided = decideSource(facts, chosen)
  if (!decided.ok) {
    const hint = facts.device === null ? undefined : IDLE
    throw new Fault('plan-refused', decided.refusal.join('; '), { hint })
  }
  if (!isRoot) throw new Fault('root-required', 'reading a disk needs root', SUDO)
  const disk = decided.value
  const { node, sectorBytes } = disk
  await using undo = new AsyncDisposableStack()
  const { sizeBytes } = disk.identity
  const device = undo.use(await openDevice({ node, sizeBytes, sectorBytes, access: 'read' }))
  const ranges = createRangeList()
  const parts = await readParts(shell, device, generalize, signal, ranges)
  const held = undo.move()
  return { device, disk, parts, ranges, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

const IDLE = 'Boot the live system, or unmount the disk and stop the programs that use it.'
const SUDO = { hint: 'Run it again as root, for example with sudo.' } as const

async function readParts(
  shell: Shell,
  device: Device,
  generalize: boolean,
  signal: AbortSignal,
  ranges: RangeList,
): Promise<readonly PartFindings[]> {
  const areas = planAreas(await seeDisk(shell, device))
  if (!areas.ok) {
    if (generalize) throw unclear()
    return [readWhole({ number: 0, offset: 0, bytes: device.sizeBytes }, areas.refusal, ranges)]
  }
  const seen: SeenPart[] = []
  for (const area of areas.value.filter(isPartition)) {
    seen.push(await seePart(shell, { device, area, signal }))
  }
  const parts: PartFindings[] = []
  for (const area of areas.value) {
    const found = seen.find((part) => part.area === area)
    const others = seen.filter((part) => part !== found)
    if (found === undefined) ranges.add(area)
    else
      parts.push(await readPart(shell, { device, seen: found, others, generalize, signal }, ranges))
  }
  return parts
}

async function seeDisk(shell: Shell, device: Device) {
  const { node, sizeBytes, sectorBytes } = device
  const head = createSlot(Math.min(TABLE_BYTES, sizeBytes))
  await device.read(head, 0)
  const end = createSlot(sectorBytes)
  await device.read(end, sizeBytes - sectorBytes)
  return { sizeBytes, sectorBytes, head, end, contents: await probeContents(shell, node) }
}

const isPartition = (area: Area): area is PartArea => area.number !== null

const unclear = () =>
  new Fault('plan-refused', 'the image cannot be generalized: the partition table is unclear', {
    hint: 'Capture without --generalize.',
  })

export type CaptureSink = (
  write: (put: (bytes: Buffer) => Promise<void>) => Promise<WrittenFrames>,
) => Promise<WrittenFrames>

interface CapturingOptions {
  readonly level: number
  readonly signal: AbortSignal
  readonly onProgress: (progress: { readonly event: 'writing' } & WriteProgress) => void
}

export interface Captured extends WrittenFrames {
  readonly usedBytes: number
  readonly seconds: number
}

const TICK_MS = 250

/** Rejects with a Fault where reading or the sink fails. */
export async function runCapture(
  { device, ranges, parts }: Pick<OpenedCapture, 'device' | 'ranges' | 'parts'>,
  sink: CaptureSink,
  { level, signal, onProgress }: CapturingOptions,
): Promise<Captured> {
  const before = performance.now()
  const patches: readonly Patch[] = parts.flatMap((part) => part.patches)
  const usedBytes = ranges.totalBytes
  const frames = await sink(async (write) => {
    const reader = createDiskReader(device, ranges, patches)
    await using workers = createFrameWorkers()
    const hashes = decideHashing(device.sizeBytes, usedBytes)
    let bytesRead = 0
    const meter = createMeter({
      phase: 'write',
      // Hashing zeros takes time, too.
      totalBytes: hashes ? device.sizeBytes : usedBytes,
      sourceBytes: usedBytes,
      bytesRead: () => bytesRead,
    })
    const onWritten = (bytes: number) => {
      const used = reader.takeCount()
      bytesRead += used
      meter.add(hashes ? bytes : used)
    }
    onProgress(meter.snapshot(CAPTURING))
    const reading = readOnce({ ...reader, hashes })
    const writing = writeFrames({ reading, write, workers, level, signal, onWritten })
    return await report(untilAborted(signal, writing), TICK_MS, meter.snapshot, onProgress)
  })
  return { ...frames, usedBytes, seconds: (performance.now() - before) / 1000 }
}

/** The file gets its name when it is complete. */
export const toFile =
  (path: string, env: Environment): CaptureSink =>
  async (write) => {
    await using _ = await openFolder(createShell({ env }), dirname(path))
    return await writeWhole(path, write)
  }

/** Rejects with a Fault where the name is taken, or nothing can be written there. */
export async function checkFile(path: string): Promise<{ readonly freeBytes: number }> {
  await checkNothingThere(path)
  return await checkFolder(dirname(path))
}

/** A warning if it may not fit; null: plenty of room. A Fault `storage-full` if it cannot. */
export function checkRoom(
  { parts, ranges }: Pick<OpenedCapture, 'parts' | 'ranges'>,
  freeBytes: number,
): string | null {
  const usedBytes = ranges.totalBytes
  const room = decideRoom(parts, usedBytes, freeBytes)
  if (room === 'enough') return null
  const words = `${renderSize(freeBytes)} free for an image of ${renderSize(usedBytes)} before compression`
  if (room === 'doubtful') return `${words}: it may not fit`
  throw new Fault('storage-full', `${words}: it cannot fit`, {
    hint: 'Choose another folder, or free space there.',
  })
}

/** A Fault where the folder is missing, or nothing can be written there. */
async function checkFolder(folder: string): Promise<{ readonly freeBytes: number }> {
  const { bavail, bsize } = await statfs(folder).catch((cause: unknown) => {
    throw new Fault('input-missing', `there is no folder ${folder}`, { cause })
  })
  if ((await isReadOnly(folder)) && !isOnStick(await realpath(folder))) {
    throw new Fault('write-failed', `${folder} is on a file system that is mounted read-only`, {
      hint: 'Choose another folder, or mount it so that it can be written.',
    })
  }
  return { freeBytes: bavail * bsize }
}

async function openFolder(shell: Shell, folder: string): Promise<AsyncDisposable> {
  const isLocked = (await isReadOnly(folder)) && isOnStick(await realpath(folder))
  return isLocked ? await unlockStick(shell) : { [Symbol.asyncDispose]: async () => {} }
}

const isReadOnly = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => false,
    (thrown: unknown) => systemCodeOf(thrown) === 'EROFS',
  )
