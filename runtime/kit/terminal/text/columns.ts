/** Lays cells out in columns, as wide as their content needs and the terminal allows. */
import { displayWidth } from '#kit/foundation/printable.ts'
import { clip, clipApart, pad } from './clip.ts'

export interface Column {
  readonly title: string
  readonly side?: 'left' | 'right'
  /** It may shrink to so many columns; absent: it is shown whole. */
  readonly least?: number
  readonly cut?: 'middle' | 'end'
  /** Where there is no room for all, the highest goes first; absent: it stays. */
  readonly drops?: number
  /** It tells the rows apart: shortened last, when all others have shrunk or gone. */
  readonly tells?: boolean
  /** It is shown even where all of its cells are empty. */
  readonly keepsEmpty?: true
}

interface ColumnLayout {
  readonly head: string
  /** Dashes below the titles. */
  readonly rule: string
  /** One for each row, no blanks at the end. */
  readonly lines: readonly string[]
}

const GAP = 2

/** One cell for each column, printable. No line is wider than `width`. */
export function layOut(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
  unicode: boolean,
): ColumnLayout {
  const all = measure(columns, rows)
  // Columns without any content are left out, unless all are.
  const filled = all.filter(({ isEmpty }) => !isEmpty)
  const kept = fit(filled.length === 0 ? all : filled, width)
  const shown = kept.map(({ column, index, width: room }) => {
    const style = { cut: column.cut ?? 'end', unicode } as const
    const texts = rows.map((cells) => cells[index] ?? '')
    const cut =
      column.tells === true
        ? clipApart(texts, room, style)
        : texts.map((text) => clip(text, room, style))
    const side = column.side === 'right' ? 'left' : 'right'
    return [clip(column.title, room, style), ...cut].map((text) => pad(text, room, side))
  })
  const layOutLine = (row: number) =>
    clip(shown.map((cells) => cells[row]).join(' '.repeat(GAP)), width, {
      cut: 'end',
      unicode,
    }).trimEnd()
  const rule = kept.map(({ width: room }) => '-'.repeat(room)).join(' '.repeat(GAP))
  return {
    head: layOutLine(0),
    rule: rule.slice(0, width),
    lines: rows.map((_cells, row) => layOutLine(row + 1)),
  }
}

/** Nothing of the rows is cut or left out at it. */
export const naturalWidth = (
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): number => sum(measure(columns, rows).filter(({ isEmpty }) => !isEmpty))

const measure = (columns: readonly Column[], rows: readonly (readonly string[])[]) =>
  columns.map((column, index) => ({
    column,
    index,
    width: Math.max(
      displayWidth(column.title),
      ...rows.map((cells) => displayWidth(cells[index] ?? '')),
    ),
    isEmpty: column.keepsEmpty !== true && rows.every((cells) => (cells[index] ?? '') === ''),
  }))

interface Measured {
  readonly column: Column
  readonly index: number
  readonly width: number
}

const sum = (columns: readonly Measured[]) =>
  columns.reduce((total, { width }) => total + width, GAP * (columns.length - 1))

/**
 * Shrinks what may shrink, the widest first; then drops what may be dropped, and tries again; what
 * tells the rows apart comes last.
 */
function fit(columns: readonly Measured[], width: number): readonly Measured[] {
  const shrunk = shrink(columns, width, ({ tells }) => tells !== true)
  if (sum(shrunk) <= width) return shrunk
  const worst = findWorst(columns.filter(({ column }) => column.tells !== true))
  if (worst !== undefined) return fit(without(columns, worst), width)
  const narrow = shrink(shrunk, width, ({ tells }) => tells === true)
  if (sum(narrow) <= width) return narrow
  const last = findWorst(columns)
  if (last !== undefined) return fit(without(columns, last), width)
  return shrink(narrow, width, () => true, LEAST)
}

/** What is left of a column that may shrink, where nothing else helps. */
const LEAST = 6

function shrink(
  columns: readonly Measured[],
  width: number,
  mayShrink: (column: Column) => boolean,
  floor = Infinity,
): readonly Measured[] {
  let fitted = columns
  for (let excess = sum(fitted) - width; excess > 0; excess -= 1) {
    const widest = fitted
      .filter(({ column, width: now }) => {
        const least = column.least === undefined ? Infinity : Math.min(floor, column.least)
        return mayShrink(column) && now > least
      })
      .toSorted((one, two) => two.width - one.width)[0]
    if (widest === undefined) return fitted
    fitted = fitted.map((one) => (one === widest ? { ...one, width: one.width - 1 } : one))
  }
  return fitted
}

const findWorst = (columns: readonly Measured[]) =>
  columns
    .filter(({ column }) => column.drops !== undefined)
    .toSorted((one, two) => (two.column.drops ?? 0) - (one.column.drops ?? 0))[0]

const without = (columns: readonly Measured[], gone: Measured) =>
  columns.filter((one) => one !== gone)
