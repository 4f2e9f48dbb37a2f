/** What was measured: each record of docs/measured/, as its page shows it between two markers, with the day and the machine. */
import { z } from 'zod'

const table = z.object({
  columns: z.array(z.string()),
  /** Whether the figures of a column stand at its right. */
  right: z.array(z.boolean()),
  rows: z.array(z.array(z.string())),
})

export const MEASURED = z.object({
  page: z.string(),
  /** The day of the run. */
  on: z.iso.date(),
  /** The machine, as a reader would compare it with another one. */
  where: z.string().min(1),
  /** Paragraphs and tables, in their order. */
  blocks: z.array(z.union([z.string(), table])),
})
export type Measured = z.infer<typeof MEASURED>
type Table = z.infer<typeof table>

const cellsOf = (row: string) =>
  row
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())

/** Parses what stands between two markers, or what a benchmark has made. */
export const parseBlocks = (text: string): Measured['blocks'] =>
  text
    .trim()
    .split(/\n{2,}/)
    .map((block) => (block.startsWith('|') ? parseTable(block) : block))

function parseTable(block: string): Table {
  const [head = '', rule = '', ...rows] = block.split('\n')
  const right = cellsOf(rule).map((cell) => cell.endsWith(':'))
  return { columns: cellsOf(head), right, rows: rows.map(cellsOf) }
}

const renderRow = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

/** Renders a record as Markdown; the formatter makes its columns as wide as they must be. */
export const renderMeasured = ({ on, where, blocks }: Measured): string =>
  [
    ...blocks.map((block) => (typeof block === 'string' ? block : renderTable(block))),
    `Measured on ${on}: ${where}.`,
  ].join('\n\n')

const renderTable = ({ columns, right, rows }: Table) =>
  [columns, right.map((is) => (is ? '---:' : '---')), ...rows].map(renderRow).join('\n')
