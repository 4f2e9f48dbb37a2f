/** Updates the checksum of an exFAT boot region when its boot sector changes. */
import { BOOT_AT, CHECKSUM_OFFSET, sumBootBytes } from '#appliance/images-volume.ts'

/** Four bytes, eight apart: the sum turns by eight of its 32 bits in between. */
const STEPS = 4
const APART = 8
/** The end of the boot code, which never runs on a volume of ours. */
const END: number = BOOT_AT.signature
const FIRST = END - STEPS * APART
/** Two more bytes that change what the last of the four finds. */
const SALT = FIRST - APART
/** Turns of the sum after the last of the four. */
const TURNS_AFTER = APART - 1

/** Nearly every one of 65,536 salts will do, so that the Error does not happen. */
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

/** Each byte sets the eight bits that are lowest at its turn. */
function fill(region: Buffer, before: number, behind: number) {
  region.fill(0, FIRST, END)
  let sum = sumBootBytes(region, { sum: before, from: SALT, to: FIRST })
  for (let at = FIRST; at < END; at += APART) {
    const turnsToCome = END - 1 - at
    region.writeUInt8((turnRight(behind, -turnsToCome) - turnRight(sum, 1)) & 0xff, at)
    sum = sumBootBytes(region, { sum, from: at, to: at + APART })
  }
}

/** The target of the first three bytes where the last of the four carries. */
const lessTheCarry = (sum: number): number =>
  turnRight(turnRight(sum, -TURNS_AFTER) - 0x100, TURNS_AFTER)

/** The sum at `END`, from the final `sum`. */
function undoBootBytes(region: Buffer, sum: number): number {
  let undone = sum
  for (let at = CHECKSUM_OFFSET - 1; at >= END; at -= 1) {
    undone = turnRight(undone - (region[at] ?? 0), -1)
  }
  return undone
}

/** 32 bits; negative turns left. */
function turnRight(value: number, bits: number): number {
  const by = bits & 31
  return ((value >>> by) | (value << (32 - by))) >>> 0
}
