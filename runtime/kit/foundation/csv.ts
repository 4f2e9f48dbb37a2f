/** Renders rows as CSV (RFC 4180), safe to open in a spreadsheet. */
import { printableText } from './printable.ts'
import { accept, refuse, type Result } from './result.ts'

/** Spreadsheets take a file for UTF-8 only where it begins with this. */
export const BYTE_ORDER_MARK = '\ufeff'

export type Cell = string | number | boolean | null | undefined

/** With its line end (CRLF). Texts that a spreadsheet would calculate get a quote in front. */
export const renderCsvRow = (cells: readonly Cell[]): string =>
  `${cells.map(renderCell).join(',')}\r\n`

/**
 * A spreadsheet takes what begins so for a formula, also behind blanks and in full width. A text that has
 * such a quote of its own gets one more, so that taking one away gives the text again.
 */
const FORMULA = /^'*[\s\0]*[=+\-@\t\r|%＝＋－＠]/

/** Takes the quote away again that `renderCsvRow` puts in front of a formula. */
export const unguardCell = (text: string): string =>
  text.startsWith("'") && FORMULA.test(text.slice(1)) ? text.slice(1) : text

/** Texts come from machines: a formula among them is shown instead of calculated. */
function renderCell(value: Cell): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'string') return String(value)
  const text = printableText(value)
  const shown = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n;\t']/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown
}

// Reads CSV as spreadsheets save it: any of three separators, quotes, any line end; what is too much is refused.

export interface CsvRow {
  /** Where it begins, counted from 1. */
  readonly line: number
  readonly cells: readonly string[]
  /** Whether it has a cell for each column and no more: what does not fit may stand in another's column. */
  readonly fits: boolean
}

interface CsvTable {
  /** As the first row names them; none: there is no row. */
  readonly columns: readonly string[]
  readonly rows: readonly CsvRow[]
}

export interface CsvLimits {
  /** Rows, empty ones too. */
  readonly rows: number
  readonly columns: number
  /** Characters of a cell. */
  readonly characters: number
}

export interface CsvRefusal {
  /**
   * `nul`: it is no text. `open-quote`: a quoted cell has no end. `after-quote`: something stands between
   * the end of a quoted cell and the separator. The others name the limit that is passed.
   */
  readonly why: 'nul' | 'open-quote' | 'after-quote' | keyof CsvLimits
  readonly line: number
}

const SEPARATORS = [',', ';', '\t'] as const
type Separator = (typeof SEPARATORS)[number]

/** A first line that names the separator to spreadsheets: `sep=;`. */
const DECLARED = /^"?sep=([,;\t])"?[,;\t]*(?:\r\n|\r|\n)/i

/** Characters of the first line that are looked at for the separator. */
const MAX_LOOKED_AT = 20_000

/**
 * Parses a table; rows without anything in them are left out, and so are empty cells behind the last column. Reading ends at the first refusal, so that hostile
 * text costs little. Cells of a table that `renderCsvRow` made still want `unguardCell`.
 */
export function parseCsv(text: string, limits: CsvLimits): Result<CsvTable, CsvRefusal> {
  const source = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
  const nul = source.indexOf('\0')
  if (nul >= 0) return refuse({ why: 'nul', line: 1 + countLineEnds(source.slice(0, nul)) })
  const start = findStart(source)
  const readCell = createCellReader(source, start.separator, limits.characters)
  const rows: Omit<CsvRow, 'fits'>[] = []
  let { at, line, read } = start
  while (at < source.length) {
    const begin = line
    const cells: string[] = []
    for (let ends = false; !ends;) {
      const cell = readCell(at, line)
      if (!cell.ok) return cell
      cells.push(cell.value.text)
      if (cells.length > limits.columns) return refuse({ why: 'columns', line: begin })
      ;({ next: at, line, ends } = cell.value)
    }
    if (++read > limits.rows) return refuse({ why: 'rows', line: begin })
    if (cells.some((cell) => cell !== '')) rows.push({ line: begin, cells })
  }
  return accept(toTable(rows))
}

function toTable([head, ...rows]: readonly Omit<CsvRow, 'fits'>[]): CsvTable {
  const columns = dropEmptyEnd(head?.cells ?? [], 0)
  const toRow = ({ line, cells: all }: Omit<CsvRow, 'fits'>): CsvRow => {
    const cells = dropEmptyEnd(all, columns.length)
    return { line, cells, fits: cells.length === columns.length }
  }
  return { columns, rows: rows.map(toRow) }
}

/** Spreadsheets fill all rows up to the longest one. */
const dropEmptyEnd = (cells: readonly string[], least: number): readonly string[] =>
  cells.slice(0, Math.max(least, cells.findLastIndex((cell) => cell.trim() !== '') + 1))

interface ReadCell {
  readonly text: string
  /** Where the next cell begins, and on which line. */
  readonly next: number
  readonly line: number
  /** Whether the row ends with it. */
  readonly ends: boolean
}

function createCellReader(source: string, separator: string, most: number) {
  const plain = new RegExp(`[^${separator}\\r\\n]*`, 'y')

  /** Reads what stands behind a cell: a separator, or the end of the row. */
  function close(text: string, end: number, line: number): Result<ReadCell, CsvRefusal> {
    if (text.length > most) return refuse({ why: 'characters', line })
    const after = source[end]
    if (after === separator) return accept({ text, next: end + 1, line, ends: false })
    if (after === undefined) return accept({ text, next: end, line, ends: true })
    if (after !== '\r' && after !== '\n') return refuse({ why: 'after-quote', line })
    const isPair = after === '\r' && source[end + 1] === '\n'
    return accept({ text, next: end + (isPair ? 2 : 1), line: line + 1, ends: true })
  }

  function readQuoted(start: number, line: number): Result<ReadCell, CsvRefusal> {
    let text = ''
    for (let from = start; ;) {
      const end = source.indexOf('"', from)
      if (end < 0) return refuse({ why: 'open-quote', line })
      text += source.slice(from, end)
      if (text.length > most) return refuse({ why: 'characters', line })
      if (source[end + 1] !== '"') return close(text, end + 1, line + countLineEnds(text))
      text += '"'
      from = end + 2
    }
  }

  return (at: number, line: number): Result<ReadCell, CsvRefusal> => {
    if (source[at] === '"') return readQuoted(at + 1, line)
    plain.lastIndex = at
    const text = plain.exec(source)?.[0] ?? ''
    return close(text, at + text.length, line)
  }
}

function findStart(source: string) {
  const [declaration = '', separator] = DECLARED.exec(source) ?? []
  return separator === undefined
    ? { separator: findSeparator(source), at: 0, line: 1, read: 0 }
    : { separator, at: declaration.length, line: 2, read: 0 }
}

/** Returns the separator that the first line has most of outside of quotes. */
function findSeparator(source: string): Separator {
  const [first = ''] = source
    .trimStart()
    .slice(0, MAX_LOOKED_AT)
    .split(/[\r\n]/, 1)
  const bare = first.replaceAll(/"[^"]*"/g, '')
  const [best = ','] = SEPARATORS.toSorted((a, b) => bare.split(b).length - bare.split(a).length)
  return best
}

const countLineEnds = (text: string): number => text.match(/\r\n|\r|\n/g)?.length ?? 0
