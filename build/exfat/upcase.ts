/** The up-case table, by which exFAT compares names regardless of case. */
import { addToChecksum } from '#appliance/images-volume.ts'

/** Outside Latin-1 there is one capital of a Latin-1 letter: that of `ÿ`. */
const LATIN_LAST = 0xff
const CAPITAL_OF_LAST = 0x178
const DIVISION_SIGN = 0xf7
/** Followed by a count of characters that are their own capitals. */
const RUN = 0xffff

/**
 * Returns the capital of a UTF-16 unit. ASCII and Latin-1 have capitals; all other characters are
 * their own.
 */
export function capitalOf(unit: number): number {
  const isAscii = unit >= 0x61 && unit <= 0x7a
  const isLatin = unit >= 0xe0 && unit < LATIN_LAST && unit !== DIVISION_SIGN
  if (isAscii || isLatin) return unit - 0x20
  return unit === LATIN_LAST ? CAPITAL_OF_LAST : unit
}

/** Renders the table in the compressed form (exFAT specification, 7.2.5). */
export function renderUpcase(): Buffer {
  const units = Array.from({ length: LATIN_LAST + 1 }, (_, unit) => capitalOf(unit))
  units.push(RUN, 0x10000 - units.length)
  const table = Buffer.alloc(units.length * 2)
  for (const [at, unit] of units.entries()) table.writeUInt16LE(unit, at * 2)
  return table
}

export const sumUpcase = (table: Uint8Array): number => table.reduce(addToChecksum, 0)
