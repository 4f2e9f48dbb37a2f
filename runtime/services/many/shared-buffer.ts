/** The decoded content that several disks still have to write: bounded, each piece kept for its last user. */
import { splitZeros, type Range } from '../../core/image/extents.ts'
import { createSlot } from '../disk/device.ts'
import { sumUp } from '../flash/checksum.ts'
import { isZeroRange } from '../flash/copier.ts'
import { SLOT_BYTES, type SlotPool } from '../flash/write-slots.ts'

interface DataExtent extends Range {
  readonly checksum: number
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

/** Finds data and zeros, and sums up the data once for all disks, if it will be read back. */
export function splitPiece(slot: Buffer, bytes: number, verifies: boolean): SharedPiece['split'] {
  if (bytes % GRAIN !== 0) return null
  const { data, zeros } = splitZeros(bytes, (at, size) => isZeroRange(slot, at, size))
  const summed = data.map(({ offset, bytes: length }) => ({
    offset,
    bytes: length,
    checksum: verifies ? sumUp(slot.subarray(offset, offset + length)) : 0,
  }))
  return { data: summed, zeros }
}

export const wholeGrains = (bytes: number): number => bytes - (bytes % GRAIN)

/** How much the fastest disk may be ahead of the slowest: 64 MiB. */
const BUFFER_SLOTS = 16
/** All memory of slots, for however many disks: 80 MiB. */
const ALL_SLOTS = 20

/** Slots that are given back by their last user. */ export function createSharedSlots() {
  const free: Buffer[] = []
  const waiting: { readonly most: number; readonly resolve: (slot: Buffer) => void }[] = []
  let used = 0

  /** Null: `most` are in use. */
  function tryTake(most: number): Buffer | null {
    if (used >= most) return null
    used += 1
    return free.pop() ?? createSlot(SLOT_BYTES)
  }
  const untilFree = (most: number): Promise<Buffer> =>
    new Promise((resolve) => {
      waiting.push({ most, resolve })
    })
  function give(slot: Buffer) {
    used -= 1
    free.push(slot)
    const at = waiting.findIndex(({ most }) => used < most)
    const [next] = at === -1 ? [] : waiting.splice(at, 1)
    const taken = next === undefined ? null : tryTake(next.most)
    if (taken !== null) next?.resolve(taken)
  }
  return {
    /** For what is decoded; null: all are in use. */
    tryTakeDecoded: () => tryTake(BUFFER_SLOTS),
    untilDecoded: () => untilFree(BUFFER_SLOTS),
    /** What a disk reads back, or reads alone from the source; some are left for it at any time. */
    pool: {
      take: async () => tryTake(ALL_SLOTS) ?? (await untilFree(ALL_SLOTS)),
      give,
    } satisfies SlotPool,
    /** One user less. */
    release(piece: SharedPiece) {
      piece.users -= 1
      if (piece.users === 0 && piece.slot !== null) give(piece.slot)
    },
  }
}
