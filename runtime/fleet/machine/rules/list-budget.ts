/** Bounds the memory of what machines report whom nobody has set up: anyone in reach can make such machines. */
import type { Inventory, InventoryDisk } from '#engine/inventory/rules/machine.ts'

/** For all their disks together: 60,000 ordinary ones. */
export const MAX_UNASSIGNED_BYTES = 64 * 2 ** 20
/** Beyond that, each machine keeps so many disks, as far as they fit. */
export const MAX_SHORT_DISKS = 64
export const MAX_SHORT_BYTES = 8 * 2 ** 10

/** What a disk costs without its texts. */
const DISK_BYTES = 512
/** A text is kept twice (as it is and in the record), at up to two bytes a character. */
const CHARACTER_BYTES = 4

export function weighDisks(disks: readonly InventoryDisk[]): number {
  let characters = 0
  for (const disk of disks) characters += countCharacters(disk)
  return disks.length * DISK_BYTES + characters * CHARACTER_BYTES
}

const countCharacters = ({
  path,
  size,
  vendor,
  model,
  serial,
  tran,
  wwn,
  by_path,
}: InventoryDisk) =>
  [path, size, vendor, model, serial, tran, wwn, by_path].reduce(
    (sum, text) => sum + (text?.length ?? 0),
    0,
  )

/** `others`: bytes that the disks of all other such machines cost. */
export function shortenList(inventory: Inventory, others: number): Inventory {
  const { disks, disksLeftOut } = inventory
  if (others + weighDisks(disks) <= MAX_UNASSIGNED_BYTES) return inventory
  const kept = pickFirst(disks)
  const leftOut = disks.length - kept.length
  return leftOut === 0
    ? inventory
    : { ...inventory, disks: kept, disksLeftOut: disksLeftOut + leftOut, isShortened: true }
}

/** Disks that can be flashed come first. */
function pickFirst(disks: readonly InventoryDisk[]): readonly InventoryDisk[] {
  const kept: InventoryDisk[] = []
  let bytes = 0
  for (const disk of disks.toSorted((a, b) => Number(isKeptBack(a)) - Number(isKeptBack(b)))) {
    bytes += weighDisks([disk])
    if (kept.length === MAX_SHORT_DISKS || bytes > MAX_SHORT_BYTES) return kept
    kept.push(disk)
  }
  return kept
}

const isKeptBack = ({ readonly, size_bytes: bytes }: InventoryDisk) => readonly || bytes === 0
