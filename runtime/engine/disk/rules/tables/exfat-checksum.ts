/** Updates the checksum of an exFAT boot region when its boot sector changes. */
import { BOOT_AT, CHECKSUM_OFFSET, sumBootBytes } from '../../../../../appliance/images-volume.ts'

/** Four bytes, eight apart: between one and the next the sum turns by eight of its 32 bits. */
const STEPS = 4
const APART = 8
/** The last of the boot code, which on a volume of ours is never run. */
const END: number = BOOT_AT.signature
const FIRST = END - STEPS * APART
/** Two more bytes, so far before the four that they change what the last of them finds. */
const SALT = FIRST - APART
/** How often the sum turns after the last of the four was added. */
const TURNS_AFTER = APART - 1

/**
 * The region with the end of its boot code chosen so that its checksum is `wanted`. An Error when no
 * choice gives it, which does not happen: nearly every salt will do, and there are 65 536.
 */
export function sumTo(region: Buffer, wanted: number): Buffer {
  const tried = Buffer.from(region)
  const before = sumBootBytes(region, { sum: 0, from: 0, to: SALT })
  const behind = undoBootBytes(region, wanted)
  const aims = [behind, lessTheCarry(behind)]
  for (let salt = 0; salt < 0x10000; salt += 1) {
    tried.writeUInt16BE(salt, SALT)
    for (const aim of aims) {
      fill(tried, before, aim)
      if (sumBootBytes(tried, { sum: before, from: SALT, to: END }) === behind) return tried
    }
  }
  throw new Error('no boot code gives the boot region its checksum')
}

/** Each byte sets those eight bits of the sum that are lowest when its turn comes. */
function fill(region: Buffer, before: number, behind: number) {
  region.fill(0, FIRST, END)
  let sum = sumBootBytes(region, { sum: before, from: SALT, to: FIRST })
  for (let at = FIRST; at < END; at += APART) {
    const turnsToCome = END - 1 - at
    region.writeUInt8((turnRight(behind, -turnsToCome) - turnRight(sum, 1)) & 0xff, at)
    sum = sumBootBytes(region, { sum, from: at, to: at + APART })
  }
}

/** What the first three bytes aim at, when the last of the four carries into what they have set. */
const lessTheCarry = (sum: number): number =>
  turnRight(turnRight(sum, -TURNS_AFTER) - 0x100, TURNS_AFTER)

/** What the sum is at `END`, when it is `sum` in the end. */
function undoBootBytes(region: Buffer, sum: number): number {
  let undone = sum
  for (let at = CHECKSUM_OFFSET - 1; at >= END; at -= 1) {
    undone = turnRight(undone - (region[at] ?? 0), -1)
  }
  return undone
}

/** 32 bits, turned by so many of them; to the left where negative. */
function turnRight(value: number, bits: number): number {
  const by = bits & 31
  return ((value >>> by) | (value << (32 - by))) >>> 0
}
