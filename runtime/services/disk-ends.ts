/** The first and the last MiB of a disk: cleared before everything else, written after it. */
import { moveBackup, parseBackupBytes } from '../core/gpt.ts'
import { Fault } from '../core/fault.ts'
import { createSlot, type Device } from './device.ts'

export const END_BYTES = 1024 * 1024
/** What a disk is told by: table and boot code; small enough to be written in one go. */
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
  await device.write(createSlot(headBytes), 0)
  if (tailStart < device.sizeBytes) {
    const end = createSlot(device.sizeBytes - tailStart)
    await device.read(end, tailStart)
    const bytes = Math.min(parseBackupBytes(end), end.length)
    const whole = Math.ceil(bytes / device.sectorBytes) * device.sectorBytes
    if (whole > 0) await device.write(createSlot(whole), device.sizeBytes - whole)
  }
  await device.flush()
}

export interface Ends {
  readonly head: Buffer
  /** The image's part of the disk's last MiB, from `tailStart` on; empty when it does not reach it. */
  readonly tail: Buffer
}

interface Part {
  readonly offset: number
  readonly bytes: Buffer
}

/** Moves the backup GPT to the end of the disk, in memory. */
export function fixBackup(
  { head, tail }: Ends,
  device: Device,
): { ends: Ends; backup: Part | null } {
  const moved = moveBackup(head, device.sizeBytes, device.sectorBytes)
  if (!moved.ok) {
    throw new Fault('image-broken', `the backup GPT cannot be moved: ${moved.refusal}`, {
      hint: 'Flash without --fix-gpt.',
    })
  }
  const { head: newHead, backup, offset } = moved.value
  return { ends: { head: newHead, tail }, backup: { offset, bytes: backup } }
}

/**
 * Writes the ends after all the rest is on the medium: the last MiB, then the first but for its
 * first 4 KiB, and these alone at the very end. What was written is read back when `verify` is set.
 */
export async function writeEnds(
  device: Device,
  { head, tail }: Ends,
  backup: Part | null,
  verify: boolean,
): Promise<void> {
  const { tailStart } = locateEnds(device.sizeBytes)
  const parts: readonly Part[] = [
    { offset: tailStart, bytes: tail },
    ...(backup === null ? [] : [backup]),
    { offset: FIRST_BYTES, bytes: head.subarray(FIRST_BYTES) },
    { offset: 0, bytes: head.subarray(0, FIRST_BYTES) },
  ]
  for (const { offset, bytes } of parts) {
    if (bytes.length === 0) continue
    const slot = alignedCopy(bytes, device.sectorBytes)
    await device.write(slot, offset)
    await device.flush()
    if (!verify) continue
    const back = createSlot(slot.length)
    await device.read(back, offset)
    if (!back.equals(slot)) {
      throw new Fault(
        'verify-failed',
        `${device.node} does not hold what was written at byte ${offset}`,
      )
    }
  }
}

/** A copy that direct I/O takes, filled up with zeros to a whole sector. */
function alignedCopy(bytes: Buffer, sectorBytes: number) {
  const slot = createSlot(Math.ceil(bytes.length / sectorBytes) * sectorBytes)
  bytes.copy(slot)
  return slot
}
