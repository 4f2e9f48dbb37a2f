/** Library entry points of the formatting module: tables and records on standard output. */
import { renderRecord, renderTable } from '../kit/terminal/text/table.ts'

/**
 * Prints rows as an aligned table: headings in capitals, a line of dashes, then one line per row;
 * `(no entries)` where there are none. `columns` are the keys to show, in this order. Booleans read
 * yes and no, what is missing stays empty, control characters are shown as `\x1b`.
 */
export function printTable(rows: readonly object[], columns: readonly string[]): void {
  process.stdout.write(renderTable(rows, columns))
}

/** Prints a record as `key: value` lines; nested records and texts of several lines are indented. */
export function printInspect(info: object): void {
  process.stdout.write(renderRecord(info))
}
