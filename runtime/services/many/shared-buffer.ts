/** The decoded content that several disks still have to write: bounded, each piece kept for its last user. */
import { crc32 } from 'node:zlib'
import { splitZeros, type Range } from '../../core/image/extents.ts'
import { createSlot } from '../disk/device.ts'
import { isZeroRange } from '../flash/copier.ts'
import { SLOT_BYTES } from '../flash/write-slots.ts'

interface DataExtent extends Range {
  readonly crc32: number
}

/** What was decoded, at its place in the image. */
export interface SharedPiece extends Range {
  /** Null: these are zeros. */
  readonly slot: Buffer | null
  /** Of a whole number of 4096 bytes: its data and its zeros, within the slot; else null. */
  readonly split: { readonly data: readonly DataExtent[]; readonly zeros: readonly Range[] } | null
  users: number
}

/** Sectors are not larger: what ends on a multiple of it ends on a whole sector of every disk. */
const GRAIN = 4096

/** Finds data and zeros, and sums up the data once for all disks. */
export function splitPiece(slot: Buffer, bytes: number): SharedPiece['split'] {
  if (bytes % GRAIN !== 0) return null
  const { data, zeros } = splitZeros(bytes, (at, size) => isZeroRange(slot, at, size))
  const summed = data.map(({ offset, bytes: length }) => ({
    offset,
    bytes: length,
    crc32: crc32(slot.subarray(offset, offset + length)),
  }))
  return { data: summed, zeros }
}

export const wholeGrains = (bytes: number): number => bytes - (bytes % GRAIN)

/** Slots that are given back by their last user. */
export function createSharedSlots(count: number) {
  let made = 0
  const free: Buffer[] = []
  const waiting: ((slot: Buffer) => void)[] = []
  const give = (slot: Buffer) => {
    const next = waiting.shift()
    if (next === undefined) free.push(slot)
    else next(slot)
  }
  return {
    /** Null: all are in use. */
    tryTake(): Buffer | null {
      if (free.length === 0 && made < count) {
        made += 1
        return createSlot(SLOT_BYTES)
      }
      return free.pop() ?? null
    },
    untilFree: (): Promise<Buffer> =>
      new Promise((resolve) => {
        waiting.push(resolve)
      }),
    /** One user less. */
    release(piece: SharedPiece) {
      piece.users -= 1
      if (piece.users === 0 && piece.slot !== null) give(piece.slot)
    },
  }
}
