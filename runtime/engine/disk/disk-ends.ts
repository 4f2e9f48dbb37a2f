/** The first and the last MiB of a disk: cleared before everything else, written last. */
import {
  moveBackup,
  parseBackupBytes,
  type GptRefusal,
  type MovedBackup,
} from './rules/tables/gpt.ts'
import { FIRST_BYTES, locateEnds, type EndPiece } from './rules/disk-end.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createSlot, notHeld, type Device } from './device.ts'

/** Clears the first MiB and a backup GPT, so that nothing boots. Rejects with a Fault. */
export async function clearEnds(device: Device): Promise<void> {
  const { headBytes, tailStart } = locateEnds(device.sizeBytes)
  // The table first: none may be left that describes lost content.
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

/** In memory. Throws a Fault `plan-refused` where the image has no backup that can be moved. */
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

/** Each piece is on the medium before the next. Rejects with a Fault. */
export async function writeEnds(
  device: Device,
  pieces: readonly EndPiece[],
  verify: boolean,
  signal: AbortSignal,
): Promise<void> {
  for (const { offset, bytes } of pieces) {
    signal.throwIfAborted()
    const slot = alignedCopy(bytes, device.sectorBytes)
    await device.write(slot, offset)
    await device.flush()
    if (verify) await verifyPiece(device, offset, slot)
  }
}

async function verifyPiece(device: Device, offset: number, slot: Buffer) {
  const back = createSlot(slot.length)
  await device.read(back, offset)
  if (back.equals(slot)) return
  throw notHeld(device.node, { offset, bytes: slot.length })
}

/**
 * The partition table first; failed writes do not end it. Rejects with a Fault only where the disk
 * cannot be flushed.
 */
export async function eraseEnds(device: Device, pieces: readonly EndPiece[]): Promise<void> {
  for (const { offset, bytes } of pieces.toReversed()) {
    const zeros = createSlot(wholeSectors(bytes.length, device.sectorBytes))
    await device.write(zeros, offset).catch(() => undefined)
  }
  if (pieces.length > 0) await device.flush()
}

const wholeSectors = (bytes: number, sectorBytes: number) =>
  Math.ceil(bytes / sectorBytes) * sectorBytes

function alignedCopy(bytes: Buffer, sectorBytes: number) {
  const slot = createSlot(wholeSectors(bytes.length, sectorBytes))
  bytes.copy(slot)
  return slot
}
