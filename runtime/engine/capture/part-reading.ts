/** Finds out what one partition holds, which of its blocks are used, and which files name the machine. */
import { decideGeneralizing, type FoundFile } from './rules/identity.ts'
import { addUnion, listRanges, type RangeList } from './rules/range-list.ts'
import { decideReading, SUPERBLOCK_BYTES, type PartitionReading } from './rules/used-blocks.ts'
import type { CapturedPart } from './rules/capture.ts'
import type { Area } from './rules/areas.ts'
import type { AreaRole } from './rules/area-role.ts'
import type { Contents } from '#engine/disk/rules/volume.ts'
import { addMirrors, type Chunk } from './rules/mirrors.ts'
import { isAllZero, type Range } from '#engine/disk/rules/extents.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { createSlot, type Device } from '#engine/disk/device.ts'
import { probeContents } from '#engine/disk/disk-contents.ts'
import { openLoopPart } from '#engine/disk/loop-part.ts'
import type { Neighbour } from '#engine/disk/rules/verity.ts'
import type { Shell } from '#kit/host/shell.ts'
import type { Patch } from './disk-reader.ts'
import { emptyIdentityFiles, listIdentityFiles, type ExtPart } from './identity-files.ts'
import { askWitness } from './witness.ts'
import { readUsedMap } from './used-map.ts'

export type PartArea = Area & { readonly number: number; readonly role: AreaRole }

export interface SeenPart {
  readonly area: PartArea
  readonly first: Buffer
  readonly contents: Contents
}

interface PartOrder {
  readonly device: Device
  readonly seen: SeenPart
  readonly others: readonly SeenPart[]
  readonly generalize: boolean
  readonly signal: AbortSignal
}

export interface PartFindings extends CapturedPart {
  /** Null: nobody looked for them. */
  readonly files: readonly FoundFile[] | null
  readonly patches: readonly Patch[]
}

export function readWhole(
  { number, offset, bytes }: Pick<PartArea, 'number' | 'offset' | 'bytes'>,
  why: string,
  ranges: RangeList,
): PartFindings {
  ranges.add({ offset, bytes })
  return { number, type: null, bytes, usedBytes: bytes, whole: why, ...NOT_LOOKED }
}

const LOGICAL = 'logical partitions are not looked into'

export async function seePart(
  shell: Shell,
  { device, area, signal }: Pick<PartOrder, 'device' | 'signal'> & { readonly area: PartArea },
): Promise<SeenPart> {
  const first = createSlot(Math.min(SUPERBLOCK_BYTES, area.bytes))
  await device.read(first, area.offset)
  signal.throwIfAborted()
  return { area, first, contents: await probeContents(shell, device.node, area) }
}

export async function readPart(
  shell: Shell,
  order: PartOrder,
  ranges: RangeList,
): Promise<PartFindings> {
  const { device, seen, generalize, signal } = order
  const { area, first, contents } = seen
  if (area.role === 'extended') {
    // Their table fills one sector: what blkid finds behind it is older.
    if (generalize) throw cannotGeneralize(LOGICAL)
    return readWhole(area, `its ${LOGICAL}`, ranges)
  }
  await using loop = await openLoopPart(shell, device, area, 'read')
  signal.throwIfAborted()
  const part = { node: loop.node, range: area, first }
  const { type } = contents
  const before = ranges.totalBytes
  const whole = await addUsed(shell, order, part, ranges)
  const usedBytes = ranges.totalBytes - before
  const holdsNothing =
    type === null &&
    generalize &&
    (area.role === 'boot-loader' || (await isBlank(device, area, signal)))
  const identity = holdsNothing
    ? NOT_LOOKED
    : await findIdentity(shell, order, part, { type, whole })
  return { number: area.number, type, bytes: area.bytes, usedBytes, whole, ...identity }
}

/** Hashes need no superblock: their content may be unknown. */
const asNeighbour = ({ area, first, contents }: SeenPart): Neighbour => ({
  bytes: area.bytes,
  first,
  isUnknown:
    (contents.type ?? contents.table) === null && area.role !== 'boot-loader' && !isAllZero(first),
})

/** Null where only used blocks are read. */
async function addUsed(
  shell: Shell,
  { device, seen, others, signal }: PartOrder,
  part: ExtPart,
  ranges: RangeList,
): Promise<string | null> {
  const { node, range, first } = part
  const { offset, bytes } = range
  const { role } = seen.area
  const reading = decideReading({ ...seen, role, bytes, others: others.map(asNeighbour) })
  const addAll = (why: string) => {
    ranges.add({ offset, bytes })
    return why
  }
  if (reading.by === 'whole') return addAll(reading.why)
  const { behind, always, ownBytes } = reading
  if (behind !== null && !(await isBlank(device, moved(behind, offset), signal))) {
    return addAll(BEHIND)
  }
  if (reading.by === 'ranges') {
    addUnion(ranges, listRanges(always), NONE, offset)
    return null
  }
  const chunks = await check(shell, reading, node, signal)
  if (!chunks.ok) return addAll(chunks.refusal)
  const map = await readUsedMap(shell, reading.tool, node, { bytes, ownBytes }, signal)
  if (!map.ok) return addAll(map.refusal)
  const used = addMirrors(map.value, chunks.value)
  if (used.count > 0 && endOf(used) > bytes) return addAll('its chunks go beyond the partition')
  const looked = { first, bytes, used, chunks: chunks.value }
  const doubt = await askWitness(shell, reading.witness, looked, { device, range, node, signal })
  if (doubt !== null) return addAll(doubt)
  addUnion(ranges, used, listRanges(always), offset)
  return null
}

const NONE = listRanges([])
const BEHIND = 'something lies behind its file system'
const moved = ({ offset, bytes }: Range, by: number): Range => ({ offset: offset + by, bytes })

/** Refused with why the map would be wrong. */
async function check(
  shell: Shell,
  { check: asked }: Extract<PartitionReading, { by: 'map' }>,
  node: string,
  signal: AbortSignal,
): Promise<Result<readonly Chunk[], string>> {
  if (asked === undefined) return accept([])
  const [tool = ''] = asked.argv
  if (!(await shell.has(tool))) return refuse(`${tool} is not installed`)
  return asked.judge(await shell.run([...asked.argv, node], { signal, timeout: TIMEOUT_MS }))
}

const endOf = (used: RangeList) => {
  const { offset, bytes } = used.at(used.count - 1)
  return offset + bytes
}

const TIMEOUT_MS = 60_000

async function findIdentity(
  shell: Shell,
  { device, generalize, signal }: PartOrder,
  part: ExtPart,
  { type, whole }: Pick<PartFindings, 'type' | 'whole'>,
): Promise<Pick<PartFindings, 'files' | 'patches'>> {
  const problem = decideGeneralizing(type, whole)
  if (generalize && problem !== null) throw cannotGeneralize(problem)
  if (problem !== null || type === null || !type.startsWith('ext')) return NOT_LOOKED
  const files = await listIdentityFiles(shell, part, signal)
  if (generalize && files === null) throw cannotGeneralize(UNREADABLE)
  if (!generalize || files === null) return { files, patches: [] }
  return { files, patches: await emptyIdentityFiles(shell, device, part, files, signal) }
}

const UNREADABLE = 'debugfs is missing, or cannot read a file system'
const NOT_LOOKED = { files: null, patches: [] } as const

async function isBlank(device: Device, { offset, bytes }: Range, signal: AbortSignal) {
  const slot = createSlot(Math.min(bytes, BLANK_BYTES))
  for (let at = 0; at < bytes; at += slot.length) {
    signal.throwIfAborted()
    const read = slot.subarray(0, bytes - at)
    await device.read(read, offset + at)
    if (!isAllZero(read)) return false
  }
  return true
}

const BLANK_BYTES = 1024 * 1024

const cannotGeneralize = (reason: string) =>
  new Fault('plan-refused', `the image cannot be generalized: ${reason}`, {
    hint: 'Capture without --generalize.',
  })
