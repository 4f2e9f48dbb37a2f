/** Tables as text: columns as wide as their widest cell. */

interface Column {
  readonly title: string
  /** Numbers stand at the right. */
  readonly align: 'left' | 'right'
}

const GAP = '   '

/** Renders the titles, then a line for each row. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const lines = [columns.map(({ title }) => title), ...rows]
  const widths = columns.map((_, at) => Math.max(...lines.map((cells) => (cells[at] ?? '').length)))
  return lines.map((cells) =>
    columns
      .map(({ align }, at) => {
        const [cell, width] = [cells[at] ?? '', widths[at] ?? 0]
        return align === 'left' ? cell.padEnd(width) : cell.padStart(width)
      })
      .join(GAP)
      .trimEnd(),
  )
}
