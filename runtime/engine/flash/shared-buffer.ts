/** The decoded content that several disks still have to write: bounded, each piece kept for its last user. */
import { splitZeros, type Range } from '../disk/rules/extents.ts'
import { createSlot } from '../disk/device.ts'
import { sumUp } from './checksum.ts'
import { isZeroRange } from './copier.ts'
import { SLOT_BYTES, type SlotPool } from './write-slots.ts'

interface DataExtent extends Range {
  readonly checksum: number
}

/** What was decoded, at its place in the image. */
export interface SharedPiece extends Range {
  /** Null: these are zeros. */
  readonly slot: Buffer | null
  /**
   * The data and the zeros within the slot, of a piece that is a whole number of 4096 bytes; else
   * null.
   */
  readonly split: { readonly data: readonly DataExtent[]; readonly zeros: readonly Range[] } | null
  users: number
  /** The users that were left behind: they may hang for long. */
  abandoned: number
  /** Whether its slot counts among those in use. */
  isCounted: boolean
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
/** All memory of slots, for however many disks: 80 MiB, and at most 24 MiB for each that hangs. */
const ALL_SLOTS = 20

/** Slots that are given back by their last user. */
export function createSharedSlots() {
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
  function serveNext() {
    const at = waiting.findIndex(({ most }) => used < most)
    const [next] = at === -1 ? [] : waiting.splice(at, 1)
    const taken = next === undefined ? null : tryTake(next.most)
    if (taken !== null) next?.resolve(taken)
  }
  function give(slot: Buffer) {
    used -= 1
    free.push(slot)
    serveNext()
  }
  /** What only disks hold that were left behind is replaced: nobody else waits for them. */
  function settle(piece: SharedPiece) {
    if (piece.slot === null || !piece.isCounted || piece.users > piece.abandoned) return
    piece.isCounted = false
    if (piece.users === 0) {
      give(piece.slot)
      return
    }
    used -= 1
    serveNext()
  }
  return {
    /** Returns a slot for what is decoded; null: all are in use. */
    tryTakeDecoded: () => tryTake(BUFFER_SLOTS),
    untilDecoded: () => untilFree(BUFFER_SLOTS),
    /** What a disk reads back, or reads alone from the source; some are left for it at any time. */
    pool: {
      take: async () => tryTake(ALL_SLOTS) ?? (await untilFree(ALL_SLOTS)),
      give,
    } satisfies SlotPool,
    /** One user less; `isAbandoned`: one of those that were left behind. */
    release(piece: SharedPiece, isAbandoned = false) {
      piece.users -= 1
      if (isAbandoned) piece.abandoned -= 1
      settle(piece)
    },
    /** One of its users was left behind. */
    abandon(piece: SharedPiece) {
      piece.abandoned += 1
      settle(piece)
    },
  }
}
