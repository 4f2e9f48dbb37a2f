/** Reads one partition for a capture: what it holds, which of its blocks are used, which files name the machine. */
import { addAbortListener, once } from 'node:events'
import { createSlot, type Device } from '#engine/disk/device.ts'
import { probeContents } from '#engine/disk/disks.ts'
import { openLoopPart } from '#engine/disk/loop-part.ts'
import { isAllZero, type Range } from '#engine/disk/rules/extents.ts'
import type { Neighbour } from '#engine/disk/rules/file-systems.ts'
import type { Contents } from '#engine/disk/rules/lsblk.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Shell } from '#kit/host/shell.ts'
import type { Area, AreaRole } from './rules/areas.ts'
import type { CapturedPart } from './rules/capture.ts'
import {
  decideGeneralizing,
  emptyFile,
  type FoundFile,
  IDENTITY_FOLDERS,
  parseInodeRange,
  parseListing,
  readExtFacts,
  renderInodeRefusal,
} from './rules/identity.ts'
import {
  addUnion,
  createDomainParser,
  type DomainParser,
  listRanges,
  MAX_MAP_LINE,
  type RangeList,
  renderMapDefect,
} from './rules/range-list.ts'
import {
  addMirrors,
  type Chunk,
  type Looked,
  MAX_READING_BYTES,
  type SecondReading,
  unreadable,
} from './rules/second-reading.ts'
import {
  decideReading,
  type PartitionReading,
  SUPERBLOCK_BYTES,
  type Witness,
} from './rules/used-blocks.ts'

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

const LOGICAL = 'logical partitions are not analysed'

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
const BEHIND = 'there is data after its file system'
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

/**
 * `node`: a device of just the partition. `bytes`: its size; `ownBytes`: that of its file system.
 * Refused in words where the tool is missing, fails, or contradicts itself.
 */
async function readUsedMap(
  shell: Shell,
  tool: string,
  node: string,
  { bytes, ownBytes }: { readonly bytes: number; readonly ownBytes: number },
  signal: AbortSignal,
): Promise<Result<RangeList, string>> {
  if (!(await shell.has(tool))) return refuse(`${tool} is not installed`)
  signal.throwIfAborted()
  const child = shell.pipe([tool, '--domain', ...PROGRESS, ...OUTPUT, '--source', node])
  const parser = createDomainParser(bytes, ownBytes)
  const end = () => void child.kill('SIGKILL')
  using _ = addAbortListener(signal, end)
  child.stdin.on('error', () => undefined)
  child.stdin.end()
  child.stderr.resume()
  const closed = once(child, 'close')
  for await (const line of splitLines(child.stdout)) {
    if (parser.take(line) && !parser.isWhole()) continue
    // With the whole map written, partclone only sleeps.
    end()
    break
  }
  await closed
  signal.throwIfAborted()
  return judge(tool, child.exitCode, parser)
}

const OUTPUT = ['--output', '-', '--logfile', '/dev/null']
/** Seconds: partclone waits at its end for the thread that shows progress. */
const PROGRESS = ['--quiet', '--UI-fresh', '1']

function judge(tool: string, exitCode: number | null, parser: DomainParser) {
  const used = parser.end()
  if (!used.ok && used.refusal !== 'empty') {
    return refuse(`the map of ${tool} is wrong: ${renderMapDefect(used.refusal)}`)
  }
  if (exitCode !== 0 && !parser.isWhole()) return refuse(`${tool} refused it`)
  return used.ok ? accept(used.value) : refuse(`${tool}: ${renderMapDefect(used.refusal)}`)
}

/** An endless line is cut, so that it is not taken for one of a map. */
async function* splitLines(output: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of output) {
    const lines = (rest + chunk.toString('latin1')).split('\n')
    rest = (lines.pop() ?? '').slice(0, MAX_MAP_LINE)
    yield* lines
  }
  if (rest !== '') yield rest
}

/** Asks what else says which blocks of a partition are used, before a map of them is believed. */
interface LookingOptions {
  readonly device: Pick<Device, 'read' | 'sizeBytes'>
  readonly range: Range
  readonly node: string
  readonly signal: AbortSignal
}

/** A slower tool has found something that it cannot cope with. */
const WITNESS_TIMEOUT_MS = 10 * 60_000

/** Why the map is wrong; null: nothing. */
async function askWitness(
  shell: Shell,
  witness: Witness,
  looked: Looked,
  { device, range, node, signal }: LookingOptions,
): Promise<string | null> {
  if (witness.by === 'reading')
    return await takeReading(witness.walk(looked), device, range, signal)
  const [tool = ''] = witness.argv
  if (!(await shell.has(tool))) return `${tool} is not installed`
  const options = { signal, timeout: WITNESS_TIMEOUT_MS }
  const { stdout, stderr } = await shell.run([...witness.argv, node], options)
  signal.throwIfAborted()
  return witness.judge(`${stdout}\n${stderr}`, looked.used.totalBytes)
}

async function takeReading(
  reading: SecondReading,
  device: LookingOptions['device'],
  range: Range,
  signal: AbortSignal,
): Promise<string | null> {
  let step = reading.next([])
  while (step.done !== true) {
    signal.throwIfAborted()
    const asked = step.value
    const total = asked.reduce((sum, { bytes }) => sum + bytes, 0)
    const isInside = ({ offset, bytes }: Range) => offset >= 0 && offset + bytes <= range.bytes
    // The disk decides what is asked for, and may hold anything.
    if (!asked.every(isInside) || total > MAX_READING_BYTES)
      return unreadable('the location of its tables')
    const wanted = asked.map(({ offset, bytes }) => ({ offset: range.offset + offset, bytes }))
    step = reading.next(await Promise.all(wanted.map((one) => readRange(device, one))))
  }
  return step.value
}

/** Direct reads begin and end with a page, or with the disk. */
async function readRange(device: LookingOptions['device'], { offset, bytes }: Range) {
  const start = Math.floor(offset / ALIGNMENT) * ALIGNMENT
  const end = Math.min(Math.ceil((offset + bytes) / ALIGNMENT) * ALIGNMENT, device.sizeBytes)
  const slot = createSlot(end - start)
  await device.read(slot, start)
  return slot.subarray(offset - start, offset - start + bytes)
}

// Finds the files of a system's identity on an ext4 partition, and empties them in the image.

/** With a file system that debugfs reads, as a device of its own. */
interface ExtPart {
  readonly node: string
  readonly range: Range
  /** With the superblock. */
  readonly first: Buffer
}

/** Null where debugfs is missing or cannot read it. */
async function listIdentityFiles(
  shell: Shell,
  { node }: Pick<ExtPart, 'node'>,
  signal: AbortSignal,
): Promise<readonly FoundFile[] | null> {
  if (!(await shell.has('debugfs'))) return null
  const listings = await Promise.all(
    IDENTITY_FOLDERS.map(async (range) =>
      parseListing(await debug(shell, `ls -p ${range.folder}`, node, signal), range),
    ),
  )
  const whole = listings.filter((files) => files !== null)
  if (whole.length < listings.length) return null
  return [...new Map(whole.flat().map((file) => [file.inode, file])).values()]
}

/** Throws a Fault where a file cannot be emptied. */
async function emptyIdentityFiles(
  shell: Shell,
  device: Pick<Device, 'read'>,
  part: ExtPart,
  files: readonly FoundFile[],
  signal: AbortSignal,
): Promise<readonly Patch[]> {
  const facts = readExtFacts(part.first)
  const patches: Patch[] = []
  for (const file of files) {
    const { stdout } = await debug(shell, `imap <${file.inode}>`, part.node, signal)
    const within = parseInodeRange(stdout, facts)
    if (within === null) throw cannotEmpty(file, 'its inode was not found')
    const inode = { offset: locate(part, file, within), bytes: within.bytes }
    const emptied = emptyFile(await readBytes(device, inode), file.inode, facts)
    if (!emptied.ok) throw cannotEmpty(file, renderInodeRefusal(emptied.refusal))
    patches.push({ offset: inode.offset, bytes: emptied.value.inode })
    for (const range of emptied.value.content) {
      patches.push({ offset: locate(part, file, range), bytes: Buffer.alloc(range.bytes) })
    }
  }
  return patches
}

/** A Fault where the range goes beyond the partition. */
function locate({ range }: ExtPart, file: FoundFile, { offset, bytes }: Range): number {
  if (offset + bytes <= range.bytes) return range.offset + offset
  throw cannotEmpty(file, 'its file system is damaged')
}

const cannotEmpty = ({ path }: FoundFile, reason: string) =>
  new Fault('plan-refused', `${path} cannot be cleared in the image: ${reason}`, {
    hint: 'Capture without --generalize, or remove the file on the machine first.',
  })

const debug = (shell: Shell, request: string, node: string, signal: AbortSignal) =>
  shell.run(['debugfs', '-R', request, node], { signal, timeout: TIMEOUT_MS })

const PAGE = 4096

/** Direct reads are of whole pages. */
async function readBytes(device: Pick<Device, 'read'>, { offset, bytes }: Range) {
  const start = Math.floor(offset / PAGE) * PAGE
  const slot = createSlot(Math.ceil((offset + bytes - start) / PAGE) * PAGE)
  await device.read(slot, start)
  return slot.subarray(offset - start, offset - start + bytes)
}

/** Replaces bytes of the disk in the image. */
export interface Patch {
  readonly offset: number
  readonly bytes: Buffer
}

/** Ranges this close are read in one go: a seek would cost more. */
const NEAR_BYTES = 256 * 1024
/** What direct reads are aligned to, for every sector size. */
const ALIGNMENT = 4096

export function createDiskReader(
  device: Pick<Device, 'read' | 'tryRead' | 'sizeBytes' | 'sectorBytes'>,
  ranges: RangeList,
  patches: readonly Patch[],
) {
  let at = 0
  let next = 0
  const counts: number[] = []

  function listWanted(end: number): readonly Range[] {
    const wanted: Range[] = []
    for (; next < ranges.count; next += 1) {
      const range = ranges.at(next)
      if (range.offset >= end) break
      const from = Math.max(range.offset, at)
      const to = Math.min(range.offset + range.bytes, end)
      wanted.push({ offset: from - at, bytes: to - from })
      if (range.offset + range.bytes > end) break
    }
    return wanted
  }

  async function read(into: Buffer, wanted: readonly Range[]) {
    const take = ({ offset, bytes }: Range) =>
      [into.subarray(offset, offset + bytes), at + offset] as const
    const readSpan = async (span: Range) => {
      if (await device.tryRead(...take(widen(span, ALIGNMENT, into.length)))) return
      for (const range of wanted.filter((one) => isWithin(one, span))) {
        await device.read(...take(widen(range, device.sectorBytes, into.length)))
      }
    }
    await Promise.all(joinNear(wanted).map(readSpan))
  }

  return {
    /** Fewer bytes than its length only at the disk's end. */
    async fill(whole: Buffer) {
      const length = Math.min(whole.length, device.sizeBytes - at)
      const into = whole.subarray(0, length)
      const wanted = listWanted(at + length)
      await read(into, wanted)
      clearBetween(into, wanted)
      for (const patch of patches) apply(into, at, patch)
      counts.push(wanted.reduce((sum, { bytes }) => sum + bytes, 0))
      at += length
      return length
    },
    /** Only where all of the next bytes are zeros: nothing wanted, nothing patched. */
    skipZeros(bytes: number) {
      const end = at + bytes
      const isWanted = next < ranges.count && ranges.at(next).offset < end
      const isChanged = patches.some(
        (patch) => patch.offset < end && patch.offset + patch.bytes.length > at,
      )
      if (end > device.sizeBytes || isWanted || isChanged) return false
      counts.push(0)
      at = end
      return true
    },
    /** Wanted bytes in the oldest buffer, which is forgotten. */
    takeCount: () => counts.shift() ?? 0,
  }
}

function joinNear(ranges: readonly Range[]): readonly Range[] {
  const spans: Range[] = []
  for (const range of ranges) {
    const last = spans.at(-1)
    if (last === undefined || range.offset - (last.offset + last.bytes) >= NEAR_BYTES) {
      spans.push(range)
    } else {
      const { offset } = last
      spans[spans.length - 1] = { offset, bytes: range.offset + range.bytes - offset }
    }
  }
  return spans
}

/** Spans are further apart than they grow here; a disk ends with a whole sector. */
function widen({ offset, bytes }: Range, unit: number, length: number): Range {
  const start = Math.floor(offset / unit) * unit
  const end = Math.min(Math.ceil((offset + bytes) / unit) * unit, length)
  return { offset: start, bytes: end - start }
}

const isWithin = ({ offset, bytes }: Range, span: Range) =>
  offset >= span.offset && offset + bytes <= span.offset + span.bytes

function clearBetween(into: Buffer, ranges: readonly Range[]) {
  let from = 0
  for (const { offset, bytes } of ranges) {
    into.fill(0, from, offset)
    from = offset + bytes
  }
  into.fill(0, from)
}

function apply(into: Buffer, at: number, { offset, bytes }: Patch) {
  const from = Math.max(offset, at)
  const to = Math.min(offset + bytes.length, at + into.length)
  if (from < to) bytes.copy(into, from - at, from - offset, to - offset)
}
