/** Puts machines into racks and slots by their labels, `rack-3` and `slot-12`. */
import { naturalKey } from '../../../kit/net/rules/natural-order.ts'

interface RackRow {
  readonly labels: readonly string[]
}

export interface RackSlot<Row> {
  /** Null: the machine has no slot that can be drawn. */
  readonly number: number | null
  /** Null: the slot is free. */
  readonly row: Row | null
}

export interface Rack<Row> {
  /** The label; null: these machines are in no rack. */
  readonly label: string | null
  readonly slots: readonly RackSlot<Row>[]
}

const RACK = /^rack-./i
const SLOT = /^slot-(\d{1,3})$/i
/** Slots that a rack can have; a machine with a higher number stands behind them. */
const MAX_SLOTS = 60

/**
 * Groups rows by their racks in natural order, those without one last. Up to the highest slot of a
 * rack, each slot is there, free ones too; a second machine in a slot stands behind all of them.
 */
export function groupByRack<Row extends RackRow>(rows: readonly Row[]): readonly Rack<Row>[] {
  const byLabel = Map.groupBy(rows, ({ labels }) => labels.find((each) => RACK.test(each)) ?? null)
  return [...byLabel]
    .toSorted(([a], [b]) => compare(a, b))
    .map(([label, found]) => ({ label, slots: fillSlots(found) }))
}

function compare(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null)
  const [one, other] = [naturalKey(a), naturalKey(b)]
  if (one === other) return 0
  return one < other ? -1 : 1
}

function fillSlots<Row extends RackRow>(rows: readonly Row[]): readonly RackSlot<Row>[] {
  const taken = new Map<number, Row>()
  const others: RackSlot<Row>[] = []
  for (const row of rows) {
    const number = slotOf(row)
    if (number === null || taken.has(number)) others.push({ number, row })
    else taken.set(number, row)
  }
  const highest = Math.max(0, ...taken.keys())
  const slots = Array.from({ length: highest }, (_, at) => ({
    number: at + 1,
    row: taken.get(at + 1) ?? null,
  }))
  return [...slots, ...others]
}

/** Returns the slot that a label names; null: none does, or no rack has so many. */
function slotOf({ labels }: RackRow): number | null {
  for (const label of labels) {
    const number = Number(SLOT.exec(label)?.[1] ?? 0)
    if (number > 0 && number <= MAX_SLOTS) return number
  }
  return null
}
