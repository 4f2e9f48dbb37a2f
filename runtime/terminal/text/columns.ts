/** Lays cells out in columns, as wide as their content needs and the terminal allows. */
import { displayWidth } from '../../core/foundation/printable.ts'
import { clip, pad } from './clip.ts'

export interface Column {
  readonly title: string
  readonly side?: 'left' | 'right'
  /** It may shrink to so many columns; absent: it is shown whole. */
  readonly least?: number
  readonly cut?: 'middle' | 'end'
  /** Where there is no room for all, the highest goes first; absent: it stays. */
  readonly drops?: number
  /** Shown even where all of its cells are empty. */
  readonly keepsEmpty?: true
}

interface Layout {
  readonly head: string
  /** Dashes below the titles. */
  readonly rule: string
  /** One for each row, no blanks at the end. */
  readonly lines: readonly string[]
}

const GAP = 2

/** `rows`: printable cells, one for each column. No line is wider than `width` if that can be. */
export function layOut(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
  unicode: boolean,
): Layout {
  const all = columns.map((column, index) => ({
    column,
    index,
    width: Math.max(
      displayWidth(column.title),
      ...rows.map((cells) => displayWidth(cells[index] ?? '')),
    ),
    isEmpty: column.keepsEmpty !== true && rows.every((cells) => (cells[index] ?? '') === ''),
  }))
  // Columns without any content are left out, unless all are.
  const filled = all.filter(({ isEmpty }) => !isEmpty)
  const kept = fit(filled.length === 0 ? all : filled, width)
  const layOutLine = (cells: readonly string[]) =>
    kept
      .map(({ column, index, width: room }) => {
        const shown = clip(cells[index] ?? '', room, { cut: column.cut ?? 'end', unicode })
        return pad(shown, room, column.side === 'right' ? 'left' : 'right')
      })
      .join(' '.repeat(GAP))
      .trimEnd()
  return {
    head: layOutLine(columns.map(({ title }) => title)),
    rule: kept.map(({ width: room }) => '-'.repeat(room)).join(' '.repeat(GAP)),
    lines: rows.map(layOutLine),
  }
}

interface Measured {
  readonly column: Column
  readonly index: number
  readonly width: number
}

const sum = (columns: readonly Measured[]) =>
  columns.reduce((total, { width }) => total + width, GAP * (columns.length - 1))

/** Shrinks what may shrink, the widest first; then drops what may be dropped, and tries again. */
function fit(columns: readonly Measured[], width: number): readonly Measured[] {
  let fitted = columns
  for (let excess = sum(fitted) - width; excess > 0; excess -= 1) {
    const widest = fitted
      .filter((one) => one.width > (one.column.least ?? Infinity))
      .toSorted((one, two) => two.width - one.width)[0]
    if (widest === undefined) return fitNext(columns, fitted, width)
    fitted = fitted.map((one) => (one === widest ? { ...one, width: one.width - 1 } : one))
  }
  return fitted
}

function fitNext(
  columns: readonly Measured[],
  fitted: readonly Measured[],
  width: number,
): readonly Measured[] {
  const worst = columns
    .filter(({ column }) => column.drops !== undefined)
    .toSorted((one, two) => (two.column.drops ?? 0) - (one.column.drops ?? 0))[0]
  if (worst === undefined) return fitted
  return fit(
    columns.filter((one) => one !== worst),
    width,
  )
}
