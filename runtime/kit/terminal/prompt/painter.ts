/** Draws whole screens and sends only what changed: a serial line is slow. */
import { type Encode, columnsOf, rowsOf, type Output } from '../text/terminal-style.ts'

/** No line is wider than the terminal. */
export interface Frame {
  readonly lines: readonly string[]
  /** Where typed text appears, counted from 0; null: the cursor is hidden. */
  readonly cursor: { readonly row: number; readonly column: number } | null
}

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** A terminal that may report changes of its size. */
type Canvas = Output & Partial<Pick<NodeJS.WriteStream, 'on' | 'off'>>

export interface Painter {
  size(): Size
  paint(frame: Frame): void
  /** The terminal's content is unknown: the next frame is drawn whole. */
  forget(): void
  /** The next frame is drawn whole. Returns what ends the listening. */
  onResize(listener: () => void): () => void
  /** Leaves the last frame where it is, and what comes next goes below it. */
  leave(): void
}

const ESC = '\u001b['
const SHOW_CURSOR = `${ESC}?25h`
const HIDE_CURSOR = `${ESC}?25l`
const moveTo = (row: number, column: number) => `${ESC}${row + 1};${column + 1}H`

const asItIs: Encode = (text) => text

/** Without an alternate screen: one can scroll back, and a serial log shows what was drawn. */
export function createPainter(output: Canvas, encode: Encode = asItIs): Painter {
  let drawn: readonly string[] | null = null
  /** How many lines the last frame had, forgotten or not; null: there is none to leave. */
  let height: number | null = null
  let isFirst = true
  const size = () => ({ columns: columnsOf(output.columns), rows: rowsOf(output.rows) })

  /** Whatever stood there before us is scrolled away, not erased. */
  function clear() {
    const scroll = isFirst ? '\n'.repeat(size().rows - 1) : ''
    isFirst = false
    return `${scroll}${ESC}0m${ESC}H${ESC}J`
  }

  return {
    size,
    paint({ lines, cursor }) {
      const before = drawn ?? []
      const start = drawn === null ? clear() : ''
      const rows = Math.max(lines.length, before.length)
      const changes = Array.from({ length: rows }, (_, row) => {
        const line = lines[row] ?? ''
        return line === (before[row] ?? '') ? '' : `${moveTo(row, 0)}${line}${ESC}K`
      }).join('')
      drawn = lines
      height = lines.length
      const cursorMove =
        cursor === null ? HIDE_CURSOR : moveTo(cursor.row, cursor.column) + SHOW_CURSOR
      output.write(encode(`${start}${changes}${cursorMove}`))
    },
    forget() {
      drawn = null
    },
    onResize(listener) {
      const resized = () => {
        drawn = null
        listener()
      }
      output.on?.('resize', resized)
      return () => output.off?.('resize', resized)
    },
    leave() {
      if (height === null) return
      output.write(`${moveTo(Math.min(height, size().rows) - 1, 0)}\n${SHOW_CURSOR}`)
      drawn = null
      height = null
      isFirst = true
    },
  }
}
