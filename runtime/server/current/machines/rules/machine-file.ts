/** A file with the names and labels of machines: parses it, and decides line by line what it would change. */
import {
  unguardCell,
  parseCsv,
  type CsvLimits,
  type CsvRefusal,
  type CsvRow,
  renderCsvRow,
  type Cell,
} from '#kit/foundation/csv.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { findMac, type Mac } from '#kit/net/rules/mac.ts'
import { fill, upperFirst } from '#kit/foundation/text.ts'
import {
  isSameIdentity,
  type Identity,
  LabelsSchema,
  NameSchema,
  sortLabels,
  type Machine,
} from './machine.ts'
import { printableText } from '#kit/foundation/printable.ts'

// What people call a machine, its name and its labels, as columns of a table and back.

/** Racks and slots are labels (`rack-3`, `slot-12`) that have a column of their own. */
const RACK_COLUMNS = ['rack', 'slot'] as const
type RackColumn = (typeof RACK_COLUMNS)[number]

/** Columns that a table lacks are undefined. */
const IDENTITY_COLUMNS = ['name', 'labels', ...RACK_COLUMNS] as const
type IdentityCells = Readonly<Record<(typeof IDENTITY_COLUMNS)[number], string>>

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

const renderIdentity = ({ name, labels }: Identity): IdentityCells => ({
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
  if (cell.includes('\ufffd'))
    return refuse('The name is not valid UTF-8. Save the table as "CSV UTF-8".')
  if (cell === misread(before ?? ''))
    return refuse(
      'The name was read in another encoding than UTF-8. Download the table again, and save it as "CSV UTF-8".',
    )
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
  if (date !== undefined)
    return refuse(
      `A spreadsheet has turned the ${column} into the date "${date}". Format the column as text, and enter the ${column} again.`,
    )
  const inLabels = sortLabels(named.filter((label) => isOf(column, label)))
  const inColumn = sortLabels(split(cell).flatMap((text) => findLabels(before, column, text)))
  if (inLabels.length === 0) {
    return accept(cell === undefined ? before.filter((label) => isOf(column, label)) : inColumn)
  }
  const [one, other] = [inLabels.join(', '), inColumn.join(', ')]
  return inColumn.length === 0 || one === other
    ? accept(inLabels)
    : refuse(`The labels name ${one}, the column ${column} names ${other}: they must match.`)
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
  return `${upperFirst(issues[0]?.message ?? '')}.`
}

/** A file has as many lines as one bulk action has machines; a table may have columns of other programs. */
const LIMITS: CsvLimits = { rows: 20_001, columns: 100, characters: 10_000 }

interface FileRow {
  readonly line: number
  readonly mac: Result<Mac, string>
  readonly cells: Result<Partial<IdentityCells>, string>
}

export interface MachineFile {
  readonly rows: readonly FileRow[]
  readonly ignored: readonly string[]
}

type FileColumn = keyof IdentityCells | 'mac'
const COLUMNS: ReadonlyMap<string, FileColumn> = new Map<string, FileColumn>([
  ['mac', 'mac'],
  ['label', 'labels'],
  ...IDENTITY_COLUMNS.map((name) => [name, name] as const),
])

const REFUSALS = {
  empty: 'Choose a file, or paste a table.',
  gone: 'This preview has expired. Choose the file again.',
  nul: 'Line {line} holds bytes that are not text. Save the table as "CSV UTF-8" and try again.',
  'open-quote': 'Line {line}: a quotation mark is not closed.',
  'after-quote': 'Line {line}: there is text after a closing quotation mark.',
  rows: 'The file has more than {most} lines. Split it.',
  columns: 'Line {line} has more than {most} columns.',
  characters: 'Line {line}: a cell has more than {most} characters.',
  noMac: 'The first line must name the column "mac", and any of name, labels, rack and slot.',
  noColumn: 'The first line must name at least one of name, labels, rack and slot.',
  doubled: 'The first line names the column {column} twice.',
} as const

/** Parses the text of a file. The refusal is a sentence about the file as a whole. */
export function parseMachineFile(text: string): Result<MachineFile, string> {
  const parsed = parseCsv(text, LIMITS)
  if (!parsed.ok) return refuse(describeRefusal(parsed.refusal))
  const { columns: titles, rows } = parsed.value
  if (titles.length === 0) return refuse(REFUSALS.empty)
  const columns = titles.map((title) => COLUMNS.get(title.trim().toLowerCase()) ?? null)
  const refusal = findHeadRefusal(columns)
  if (refusal !== null) return refuse(refusal)
  const ignored = titles.filter((title, at) => columns[at] === null && title.trim() !== '')
  return accept({ rows: rows.map((row) => toRow(row, columns)), ignored })
}

function describeRefusal({ why, line }: CsvRefusal): string {
  const most = why === 'rows' ? LIMITS.rows - 1 : why in LIMITS ? readLimit(why) : ''
  return fill(REFUSALS[why], { line, most })
}

const readLimit = (why: string) => (why === 'columns' ? LIMITS.columns : LIMITS.characters)

function findHeadRefusal(columns: readonly (FileColumn | null)[]): string | null {
  const known = columns.filter((column) => column !== null)
  const doubled = known.find((column, at) => known.indexOf(column) !== at)
  if (doubled !== undefined) return fill(REFUSALS.doubled, { column: doubled })
  if (!known.includes('mac')) return REFUSALS.noMac
  return known.length === 1 ? REFUSALS.noColumn : null
}

function toRow({ line, cells, fits }: CsvRow, columns: readonly (FileColumn | null)[]): FileRow {
  const found = new Map<FileColumn, string>()
  for (const [at, column] of columns.entries()) {
    if (column !== null) found.set(column, unguardCell(cells[at] ?? ''))
  }
  const text = found.get('mac') ?? ''
  const mac = findMac(text.trim())
  const named = IDENTITY_COLUMNS.flatMap((name) => {
    const cell = found.get(name)
    return cell === undefined ? [] : [[name, cell] as const]
  })
  return {
    line,
    mac: mac === null ? refuse(text.slice(0, MAX_SHOWN)) : accept(mac),
    cells: fits
      ? accept(Object.fromEntries(named))
      : refuse(
          `This line has ${cells.length} cells, but the first line names ${columns.length} columns. Put quotation marks around a text with a separator in it.`,
        ),
  }
}

const MAX_SHOWN = 40

interface LineBase {
  readonly line: number
  readonly mac: string
}

export interface ChangedLine extends LineBase {
  readonly is: 'changed'
  readonly mac: Mac
  readonly before: Identity
  readonly after: Identity
}

export type FileLine =
  | ChangedLine
  | (LineBase & { readonly is: 'same' | 'unknown' | 'twice' })
  | (LineBase & { readonly is: 'refused'; readonly reason: string })

/** `find`: among seen machines. A machine on several lines is changed by none of them. */
export function createLinePlanner(
  { rows }: MachineFile,
  find: (mac: Mac) => Identity | null,
): (row: FileRow) => FileLine {
  const counts = new Map<Mac, number>()
  for (const { mac } of rows) {
    if (mac.ok) counts.set(mac.value, (counts.get(mac.value) ?? 0) + 1)
  }
  return ({ line, mac, cells }) => {
    if (!cells.ok) {
      return { is: 'refused', line, mac: mac.ok ? mac.value : mac.refusal, reason: cells.refusal }
    }
    if (!mac.ok) {
      const reason = `"${mac.refusal}" is not a MAC address (six pairs of hexadecimal digits).`
      return { is: 'refused', line, mac: mac.refusal, reason }
    }
    const base = { line, mac: mac.value }
    if ((counts.get(mac.value) ?? 0) > 1) return { is: 'twice', ...base }
    const before = find(mac.value)
    if (before === null) return { is: 'unknown', ...base }
    const after = applyIdentity(before, cells.value)
    if (!after.ok) return { is: 'refused', ...base, reason: after.refusal }
    return isSameIdentity(before, after.value)
      ? { is: 'same', ...base }
      : { is: 'changed', ...base, before, after: after.value }
  }
}

/** Finds machines that get a name which another machine has as well afterwards; by their addresses, that other one's. */
export function findTwins(
  lines: readonly FileLine[],
  machines: readonly Pick<Machine, 'mac' | 'name'>[],
): ReadonlyMap<Mac, Mac> {
  const names = new Map(machines.map(({ mac, name }) => [mac, name]))
  const renamed = lines
    .filter((line) => line.is === 'changed')
    .filter(({ before, after }) => before.name !== after.name)
  for (const { mac, after } of renamed) names.set(mac, after.name)
  const named = Map.groupBy(names, ([, name]) => name?.toLowerCase() ?? null)
  return new Map(
    renamed.flatMap(({ mac, after }) => {
      const all = after.name === null ? [] : (named.get(after.name.toLowerCase()) ?? [])
      const [other] = all.filter(([each]) => each !== mac)
      return other === undefined ? [] : [[mac, other[0]] as const]
    }),
  )
}

// The columns of machines as CSV, of which names and labels can be read back.

interface TabledMachine {
  readonly machine: Machine
  /** Of the machine itself; null: not reported. */
  readonly serial: string | null
  readonly image: string | null
  readonly state: string
}

const FACTS = {
  serial: ({ serial }) => serial,
  image: ({ image }) => image,
  disk: ({ machine }) => machine.target_disk_serial,
  mode: ({ machine }) => machine.boot_mode,
  state: ({ state }) => state,
} as const satisfies Readonly<Record<string, (facts: TabledMachine) => Cell>>

export const MACHINES_CSV_HEAD = renderCsvRow(['mac', ...IDENTITY_COLUMNS, ...Object.keys(FACTS)])

export function renderMachineCsv(facts: TabledMachine): string {
  const identity = renderIdentity(facts.machine)
  const named = IDENTITY_COLUMNS.map((column) => identity[column])
  return renderCsvRow([
    facts.machine.mac,
    ...named,
    ...Object.values(FACTS).map((read) => read(facts)),
  ])
}
