/** What people call a machine, its name and its labels, as columns of a table and back. */
import { printableText } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { Identity } from '../machine.ts'
import { LabelsSchema, NameSchema, sortLabels } from '../label.ts'

const t = PAGES.machineFile.lineRefusals

/** Racks and slots are labels (`rack-3`, `slot-12`) that have a column of their own. */
const RACK_COLUMNS = ['rack', 'slot'] as const
type RackColumn = (typeof RACK_COLUMNS)[number]

/** Columns that a table lacks are undefined. */
export const IDENTITY_COLUMNS = ['name', 'labels', ...RACK_COLUMNS] as const
export type IdentityCells = Readonly<Record<(typeof IDENTITY_COLUMNS)[number], string>>

const isOf = (column: RackColumn, label: string): boolean =>
  label.length > column.length + 1 && label.toLowerCase().startsWith(`${column}-`)

const findColumn = (label: string): RackColumn | null =>
  RACK_COLUMNS.find((column) => isOf(column, label)) ?? null

/** `rack-3` is `3`; a label that would be read back as another stays whole. */
function shorten(column: RackColumn, label: string): string {
  const rest = label.slice(column.length + 1)
  const isPlain = label.startsWith(`${column}-`) && rest.trim() !== '' && !isOf(column, rest)
  return isPlain ? rest : label
}

const cellOf = (label: string): string => {
  const column = findColumn(label)
  return column === null ? label : shorten(column, label)
}

const renderLabels = (column: RackColumn | null, labels: readonly string[]): string =>
  labels
    .filter((label) => findColumn(label) === column)
    .map(cellOf)
    .join(', ')

export const renderIdentity = ({ name, labels }: Identity): IdentityCells => ({
  name: name ?? '',
  labels: renderLabels(null, labels),
  rack: renderLabels('rack', labels),
  slot: renderLabels('slot', labels),
})

/** Absent and unchanged cells change nothing. The refusal gives the reason in words. */
export function applyIdentity(
  before: Identity,
  cells: Partial<IdentityCells>,
): Result<Identity, string> {
  const name = readName(before.name, cells.name)
  if (!name.ok) return name
  const labels = readLabels(before.labels, cells)
  return labels.ok ? accept({ name: name.value, labels: labels.value }) : labels
}

function readName(before: string | null, cell: string | undefined): Result<string | null, string> {
  // Characters that no table shows are escaped there, which is no new name.
  if (cell === undefined || cell === printableText(before ?? '')) return accept(before)
  if (cell.includes('\ufffd')) return refuse(t.notUtf8)
  if (cell === misread(before ?? '')) return refuse(t.notNamed)
  const parsed = NameSchema.safeParse(cell)
  return parsed.success ? accept(parsed.data || null) : refuse(asSentence(parsed.error))
}

/** What a spreadsheet shows of a text that it does not take for UTF-8. */
const misread = (text: string): string =>
  new TextDecoder('windows-1252').decode(new TextEncoder().encode(text))

function readLabels(
  before: readonly string[],
  cells: Partial<IdentityCells>,
): Result<readonly string[], string> {
  const named = split(cells.labels).flatMap((text) => findLabels(before, null, text))
  const made: string[] =
    cells.labels === undefined ? before.filter(isElsewhere) : named.filter(isElsewhere)
  for (const column of RACK_COLUMNS) {
    const found = readColumn(before, column, { named, cell: cells[column] })
    if (!found.ok) return found
    made.push(...found.value)
  }
  const sorted = sortLabels(made)
  if (sorted.join(',') === sortLabels(before).join(',')) return accept(before)
  const parsed = LabelsSchema.safeParse(sorted)
  return parsed.success ? accept(parsed.data) : refuse(asSentence(parsed.error))
}

function readColumn(
  before: readonly string[],
  column: RackColumn,
  { named, cell }: { readonly named: readonly string[]; readonly cell: string | undefined },
): Result<readonly string[], string> {
  const isKnown = (text: string) =>
    before.some((label) => findColumn(label) === column && cellOf(label).trim() === text)
  const date = split(cell).find((text) => DATE.test(text) && !isKnown(text))
  if (date !== undefined) return refuse(fill(t.date, { column, text: date }))
  const inLabels = sortLabels(named.filter((label) => isOf(column, label)))
  const inColumn = sortLabels(split(cell).flatMap((text) => findLabels(before, column, text)))
  if (inLabels.length === 0) {
    return accept(cell === undefined ? before.filter((label) => isOf(column, label)) : inColumn)
  }
  const [one, other] = [inLabels.join(', '), inColumn.join(', ')]
  return inColumn.length === 0 || one === other
    ? accept(inLabels)
    : refuse(fill(t.twoRacks, { inLabels: one, column, inColumn: other }))
}

const MONTHS =
  'janv?|f[eé][bv]r?|m[aä]rs?|märz|mrz|mrt|a[pbv]r|ma[igjy]|mei|ju[nl]|juin|juil|giu|lug|aug|ago|août|sept?|set|o[ckt]t|out|nov|d[eéi][cz]|ene|gen'

/** The days and months that spreadsheets of several countries make of `1-4`, `1-32` or `3/12`. */
const DATE = new RegExp(
  [
    String.raw`^\d{1,2}[-. /]+(?:${MONTHS})\.?(?:[-. /]+\d{2,4})?$`,
    String.raw`^(?:jan|feb|mar|mrz|mär|apr|may|mai|jun|jul|aug|sep|o[ck]t|nov|de[cz])\.?[-. ]+\d\d$`,
    String.raw`^\d{1,2}[-./]\d{1,2}[-./](?:19|20)\d\d$`,
    String.raw`^(?:19|20)\d\d[-./]\d{1,2}[-./]\d{1,2}$`,
    String.raw`^\d{1,2}/\d{1,2}/\d\d$`,
  ].join('|'),
  'iu',
)

const isElsewhere = (label: string): boolean => findColumn(label) === null

const split = (cell = ''): readonly string[] =>
  cell
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

/** Blanks aside, a cell means the label that the machine has. */
function findLabels(
  before: readonly string[],
  column: RackColumn | null,
  text: string,
): readonly string[] {
  const known = before.filter(
    (label) => findColumn(label) === column && cellOf(label).trim() === text,
  )
  if (known.length > 0) return known
  return [column === null || isOf(column, text) ? text : `${column}-${text}`]
}

function asSentence({ issues }: { readonly issues: readonly { readonly message: string }[] }) {
  const text = issues[0]?.message ?? ''
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
