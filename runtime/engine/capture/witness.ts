/** Asks what else says which blocks of a partition are used, before a map of them is believed. */
import {
  MAX_READING_BYTES,
  unreadable,
  type SecondReading,
  type Looked,
} from './rules/second-reading.ts'
import type { Witness } from './rules/used-blocks.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { createSlot, type Device } from '#engine/disk/device.ts'
import type { Shell } from '#kit/host/shell.ts'

interface LookingOptions {
  readonly device: Pick<Device, 'read' | 'sizeBytes'>
  readonly range: Range
  readonly node: string
  readonly signal: AbortSignal
}

/** A slower tool has found something that it cannot cope with. */
const TIMEOUT_MS = 10 * 60_000

/** Why the map is wrong; null: nothing. */
export async function askWitness(
  shell: Shell,
  witness: Witness,
  looked: Looked,
  { device, range, node, signal }: LookingOptions,
): Promise<string | null> {
  if (witness.by === 'reading')
    return await takeReading(witness.walk(looked), device, range, signal)
  const [tool = ''] = witness.argv
  if (!(await shell.has(tool))) return `${tool} is not installed`
  const options = { signal, timeout: TIMEOUT_MS }
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
      return unreadable('where its tables lie')
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

const ALIGNMENT = 4096
