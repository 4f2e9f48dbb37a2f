/** Library entry points of the formatting module: tables and records on standard output. */
import { renderRecord, renderTable } from '#kit/terminal/text/columns.ts'

/**
 * Prints rows on standard output as an aligned table: headings in capitals, a line of dashes, one line
 * per row, or `(no entries)`. Booleans are printed as yes and no, missing values as nothing, control
 * characters escaped (`\x1b`).
 *
 * @param rows - The records to print.
 * @param columns - The keys to print, in this order.
 *
 * @example
 * ```ts
 * import { printTable } from 'flasher-lab/formatting'
 *
 * printTable([{ path: '/dev/sda', removable: true }], ['path', 'removable'])
 * // PATH      REMOVABLE
 * // --------  ---------
 * // /dev/sda  yes
 * ```
 */
export function printTable(rows: readonly object[], columns: readonly string[]): void {
  process.stdout.write(renderTable(rows, columns))
}

/**
 * Prints a record on standard output as `key: value` lines; nested records and texts of several lines
 * are indented.
 *
 * @param info - The record to print.
 *
 * @example
 * ```ts
 * import { printInspect } from 'flasher-lab/formatting'
 *
 * printInspect({ format: 'img.zst', size_bytes: 1024 })
 * // format: img.zst
 * // size_bytes: 1024
 * ```
 */
export function printInspect(info: object): void {
  process.stdout.write(renderRecord(info))
}
