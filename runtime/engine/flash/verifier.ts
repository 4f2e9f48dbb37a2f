/** Reads a disk back, past the page cache, and compares it with the checksums of the write. */
import { isAllZero, type Range } from '#engine/disk/rules/extents.ts'
import { sumUp, type Written } from './copier.ts'
import { notHeld, type Device } from '#engine/disk/device.ts'
import { SLOT_BYTES, type TaskGroup, type Slots } from './write-slots.ts'

interface VerifyOrder {
  readonly device: Device
  readonly written: Written
  /** Read the ranges that the device zeroed itself as a whole, not only samples of them. */
  readonly all: boolean
  /** Read only what ends before this; absent: all of it. */
  readonly to?: number
  readonly slots: Slots
  readonly tasks: TaskGroup
  readonly signal: AbortSignal
  readonly onVerified: (bytes: number) => void
}

/** Samples of a zeroed range: its first and last bytes, and as many between at this distance. */
const SAMPLE_BYTES = 64 * 1024
const SAMPLE_DISTANCE = 64 * 1024 * 1024

/** A Fault `verify-failed` names the first place that differs. */
export async function verifyWritten(order: VerifyOrder): Promise<void> {
  const { device, slots, tasks, signal, onVerified } = order
  async function check(range: Range, isRight: (bytes: Buffer) => boolean) {
    signal.throwIfAborted()
    tasks.check()
    const slot = await slots.take()
    tasks.launch(async () => {
      try {
        const part = slot.subarray(0, range.bytes)
        await device.read(part, range.offset)
        if (!isRight(part)) throw notHeld(device.node, range)
        onVerified(range.bytes)
      } finally {
        slots.give(slot)
      }
    })
  }
  const isWanted = ({ offset, bytes }: Range) => offset + bytes <= (order.to ?? Infinity)
  for (let index = 0; index < order.written.data.count; index += 1) {
    const extent = order.written.data.at(index)
    if (isWanted(extent)) await check(extent, (bytes) => sumUp(bytes) === extent.checksum)
  }
  for (const range of zeroRanges(order)) if (isWanted(range)) await check(range, isAllZero)
  await tasks.land()
}

/** How many bytes a verification reads. */
export function bytesToVerify(order: Pick<VerifyOrder, 'written' | 'all'>): number {
  let bytes = order.written.data.totalBytes
  for (const range of zeroRanges(order)) bytes += range.bytes
  return bytes
}

function* zeroRanges({ written, all }: Pick<VerifyOrder, 'written' | 'all'>): Generator<Range> {
  const size = all ? SLOT_BYTES : SAMPLE_BYTES
  const step = all ? SLOT_BYTES : SAMPLE_DISTANCE
  for (let index = 0; index < written.zeroed.count; index += 1) {
    const { offset, bytes } = written.zeroed.at(index)
    for (let at = 0; at < bytes; at += step) {
      yield { offset: offset + at, bytes: Math.min(size, bytes - at) }
    }
    const last = Math.max(0, bytes - size)
    if (!all && last % step !== 0) yield { offset: offset + last, bytes: bytes - last }
  }
}
