/** The first and the last MiB of a disk: cleared before everything else, written last. */
import {
  moveBackup,
  parseBackupBytes,
  type GptRefusal,
  type MovedBackup,
} from '../../core/disk/gpt.ts'
import { Fault } from '../../core/foundation/fault.ts'
import { createSlot, notHeld, type Device } from './device.ts'

const END_BYTES = 1024 * 1024
/** Holds what identifies a disk's content, table and boot code; small enough to be written in one go. */
const FIRST_BYTES = 4096

/** Where the ends lie on a disk; on a very small one they meet. */
export function locateEnds(diskBytes: number): {
  readonly headBytes: number
  readonly tailStart: number
} {
  const headBytes = Math.min(END_BYTES, diskBytes)
  return { headBytes, tailStart: Math.max(headBytes, diskBytes - END_BYTES) }
}

/** Clears the first MiB and a backup GPT at the end, if there is one, so that nothing boots. */
export async function clearEnds(device: Device): Promise<void> {
  const { headBytes, tailStart } = locateEnds(device.sizeBytes)
  // The table first: if this is cut short, none is left that describes lost content.
  const first = Math.min(FIRST_BYTES, headBytes)
  await device.write(createSlot(first), 0)
  if (first < headBytes) await device.write(createSlot(headBytes - first), first)
  if (tailStart < device.sizeBytes) {
    const end = createSlot(device.sizeBytes - tailStart)
    await device.read(end, tailStart)
    const bytes = Math.min(parseBackupBytes(end), end.length)
    const whole = Math.ceil(bytes / device.sectorBytes) * device.sectorBytes
    if (whole > 0) await device.write(createSlot(whole), device.sizeBytes - whole)
  }
  await device.flush()
}

/** One piece of the ends, on whole sectors. */
export interface EndPart {
  readonly offset: number
  readonly slot: Buffer
}

/** The backup GPT moved to the end of the disk, in memory; a Fault where the image has none to move. */
export function fixBackup(
  head: Buffer,
  { sizeBytes, sectorBytes }: Pick<Device, 'sizeBytes' | 'sectorBytes'>,
): MovedBackup {
  const moved = moveBackup(head, sizeBytes, sectorBytes)
  if (moved.ok) return moved.value
  throw new Fault('plan-refused', `the backup GPT cannot be moved: ${REFUSALS[moved.refusal]}`, {
    hint: 'Flash without --fix-gpt.',
  })
}

const REFUSALS: Readonly<Record<GptRefusal, string>> = {
  'no-gpt': 'the image has no GPT for disks with such sectors',
  'damaged-gpt': "the image's GPT is damaged",
  'disk-too-small': 'a partition lies where it would have to be',
}

/**
 * The ends in the order in which they are written, when all the rest is on the medium: the last MiB,
 * then the first but for its first 4 KiB, and these alone at the very end. `tail`: the image's part of
 * the disk's last MiB, empty when it does not reach it.
 */
export function planEnds(
  { sizeBytes, sectorBytes }: Device,
  head: Buffer,
  tail: Buffer,
  moved: MovedBackup | null,
): readonly EndPart[] {
  const first = moved?.head ?? head
  const parts = [
    { offset: locateEnds(sizeBytes).tailStart, bytes: tail },
    ...(moved === null ? [] : [{ offset: moved.offset, bytes: moved.backup }]),
    { offset: FIRST_BYTES, bytes: first.subarray(FIRST_BYTES) },
    { offset: 0, bytes: first.subarray(0, FIRST_BYTES) },
  ]
  return parts.flatMap(({ offset, bytes }) =>
    bytes.length === 0 ? [] : [{ offset, slot: alignedCopy(bytes, sectorBytes) }],
  )
}

/** Each part is on the medium, and read back if wanted, before the next is written. */
export async function writeEnds(
  device: Device,
  parts: readonly EndPart[],
  verify: boolean,
  signal: AbortSignal,
): Promise<void> {
  for (const { offset, slot } of parts) {
    signal.throwIfAborted()
    await device.write(slot, offset)
    await device.flush()
    if (verify) await verifyPart(device, offset, slot)
  }
}

async function verifyPart(device: Device, offset: number, slot: Buffer) {
  const back = createSlot(slot.length)
  await device.read(back, offset)
  if (back.equals(slot)) return
  throw notHeld(device.node, { offset, bytes: slot.length })
}

/** Erases what may have been written, the partition table first; a write that fails does not end it. */
export async function eraseEnds(device: Device, parts: readonly EndPart[]): Promise<void> {
  for (const { offset, slot } of parts.toReversed()) {
    await device.write(createSlot(slot.length), offset).catch(() => undefined)
  }
  if (parts.length > 0) await device.flush()
}

/** A copy that direct I/O takes, filled up with zeros to a whole sector. */
function alignedCopy(bytes: Buffer, sectorBytes: number) {
  const slot = createSlot(Math.ceil(bytes.length / sectorBytes) * sectorBytes)
  bytes.copy(slot)
  return slot
}
