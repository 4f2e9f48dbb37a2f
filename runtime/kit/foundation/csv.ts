/** Renders rows as CSV (RFC 4180), safe to open in a spreadsheet. */
import { printableText } from './printable.ts'

/** Spreadsheets take a file for UTF-8 only where it begins with this. */
export const BYTE_ORDER_MARK = '\ufeff'

export type Cell = string | number | boolean | null | undefined

/**
 * Renders one row with its line end (CRLF). Texts that a spreadsheet would calculate get a quote in
 * front.
 */
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
