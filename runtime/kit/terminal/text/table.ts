/** Tables and records as text: aligned, trimmed, and safe whatever they hold. */
import { printable, printableLines } from '#kit/foundation/printable.ts'
import { layOut, type Column } from './columns.ts'
import { isRecord } from '#kit/foundation/shape.ts'

/** A key of the rows, and what becomes of its column on a narrow terminal. */
interface TextColumn extends Omit<Column, 'title' | 'keepsEmpty'> {
  readonly key: string
  /** Absent: the key. */
  readonly title?: string
}

/** Where a table goes; `width` null: no terminal, so nothing is cut. */
interface TableRoom {
  readonly width: number | null
  readonly unicode: boolean
}

const NO_TERMINAL: TableRoom = { width: null, unicode: true }

/**
 * A header in capitals, a line of dashes, then the rows, with two blanks between columns and none
 * at the end of a line. No rows at all read `(no entries)`. The text ends with a line end.
 */
export function renderTable(
  rows: readonly object[],
  columns: readonly (string | TextColumn)[],
  { width, unicode }: TableRoom = NO_TERMINAL,
): string {
  if (rows.length === 0) return '(no entries)\n'
  const shown = columns.map((column) => (typeof column === 'string' ? { key: column } : column))
  const cells = rows.map((row) => {
    const fields = new Map(Object.entries(row))
    return shown.map(({ key }) => printable(renderValue(fields.get(key))))
  })
  const titled = shown.map(({ key, title = key, ...column }, index) => ({
    ...column,
    // What says nothing is the first to go.
    ...(column.drops !== undefined && cells.every((row) => row[index] === '') && { drops: 100 }),
    title: title.toUpperCase(),
    keepsEmpty: true as const,
  }))
  const { head, rule, lines } = layOut(titled, cells, width ?? Number.POSITIVE_INFINITY, unicode)
  return [head, rule, ...lines].map((line) => `${line}\n`).join('')
}

/** Nested records and texts of several lines are indented blocks. */
export const renderRecord = (record: object): string =>
  Object.entries(record)
    .flatMap(([key, value]) => renderField(key, value, ''))
    .map((line) => `${line}\n`)
    .join('')

/** Deeper records are shown as JSON: an outline of them is unreadable. */
const MAX_DEPTH = 8

function renderField(key: string, value: unknown, indent: string): readonly string[] {
  const name = `${indent}${printable(key)}:`
  const deeper = `${indent}  `
  if (isRecord(value) && indent.length < MAX_DEPTH * 2) {
    const fields = Object.entries(value).flatMap(([k, v]) => renderField(k, v, deeper))
    return fields.length === 0 ? [`${name} (none)`] : [name, ...fields]
  }
  const lines = typeof value === 'string' ? printableLines(value) : [printable(renderValue(value))]
  if (lines.length > 1) return [name, ...lines.map((line) => `${deeper}${line}`.trimEnd())]
  return [`${name} ${lines[0] ?? ''}`.trimEnd()]
}

/** Booleans as yes and no, unknown values as an empty cell. */
function renderValue(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
