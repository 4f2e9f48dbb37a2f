/** Validates a label of a machine ("Limits"). */
import { z } from 'zod'
import { printable } from '#kit/foundation/printable.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'

const MAX_LABEL_CHARACTERS = 64
const LABEL = /^[A-Za-z0-9][A-Za-z0-9 ._-]*$/
const LABEL_RULE =
  'use the letters A to Z, digits, spaces and . _ - and begin with a letter or a digit'

export const LabelSchema = z
  .string()
  .superRefine((label, context) => {
    const wrong = findLabelMistake(label)
    if (wrong !== null) context.addIssue(wrong)
  })
  .meta({ minLength: 1, maxLength: MAX_LABEL_CHARACTERS, pattern: LABEL.source })

function findLabelMistake(label: string): string | null {
  if (label === '') return 'a label is not empty'
  if (label.length > MAX_LABEL_CHARACTERS) {
    return `a label has at most ${MAX_LABEL_CHARACTERS} characters, not ${label.length}`
  }
  if (LABEL.test(label)) return null
  const wrong = [...label].find((character) => !/[A-Za-z0-9 ._-]/.test(character))
  return wrong === undefined
    ? `a label cannot begin with ${nameCharacter(label.charAt(0))}: ${LABEL_RULE}`
    : `a label cannot hold ${nameCharacter(wrong)}: ${LABEL_RULE}`
}

export function nameCharacter(character: string): string {
  if (character === ' ') return 'a space'
  if (printable(character) === character) return `"${character}"`
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

// Puts machines into racks and slots by their labels, `rack-3` and `slot-12`.

interface RackRow {
  readonly labels: readonly string[]
}

export interface RackSlot<Row> {
  /** Null: no slot that can be drawn. */
  readonly number: number | null
  /** Null: the slot is free. */
  readonly row: Row | null
}

export interface Rack<Row> {
  /** Null: machines in no rack. */
  readonly label: string | null
  readonly slots: readonly RackSlot<Row>[]
}

const RACK = /^rack-./i
const SLOT = /^slot-(\d{1,3})$/i
/** Machines with a higher number stand behind the rack. */
const MAX_SLOTS = 60

/** Slot, then rack: where somebody looks for the machine. */
export const sortByPlace = (labels: readonly string[]): readonly string[] =>
  labels.toSorted((one, other) => rankOf(one) - rankOf(other))

const rankOf = (label: string): number => (SLOT.test(label) ? 0 : RACK.test(label) ? 1 : 2)

/** Natural order, no rack last. Free slots are there; a second machine in a slot comes last. */
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

/** Null: none, or beyond the limit. */
function slotOf({ labels }: RackRow): number | null {
  for (const label of labels) {
    const number = Number(SLOT.exec(label)?.[1] ?? 0)
    if (number > 0 && number <= MAX_SLOTS) return number
  }
  return null
}
