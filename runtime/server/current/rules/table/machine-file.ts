/** A file with the names and labels of machines: parses it, and decides line by line what it would change. */
import { unguardCell } from '#kit/foundation/csv.ts'
import {
  parseCsv,
  type CsvLimits,
  type CsvRefusal,
  type CsvRow,
} from '#kit/foundation/csv-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { findMac, type Mac } from '#kit/net/rules/mac.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import { isSameIdentity, type Identity } from '../machine.ts'
import { applyIdentity, IDENTITY_COLUMNS, type IdentityCells } from './identity.ts'

const t = PAGES.machineFile

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

/** Parses the text of a file. The refusal is a sentence about the file as a whole. */
export function parseMachineFile(text: string): Result<MachineFile, string> {
  const parsed = parseCsv(text, LIMITS)
  if (!parsed.ok) return refuse(describeRefusal(parsed.refusal))
  const { columns: titles, rows } = parsed.value
  if (titles.length === 0) return refuse(t.refusals.empty)
  const columns = titles.map((title) => COLUMNS.get(title.trim().toLowerCase()) ?? null)
  const refusal = findHeadRefusal(columns)
  if (refusal !== null) return refuse(refusal)
  const ignored = titles.filter((title, at) => columns[at] === null && title.trim() !== '')
  return accept({ rows: rows.map((row) => toRow(row, columns)), ignored })
}

function describeRefusal({ why, line }: CsvRefusal): string {
  const most = why === 'rows' ? LIMITS.rows - 1 : why in LIMITS ? readLimit(why) : ''
  return fill(t.refusals[why], { line, most })
}

const readLimit = (why: string) => (why === 'columns' ? LIMITS.columns : LIMITS.characters)

function findHeadRefusal(columns: readonly (FileColumn | null)[]): string | null {
  const known = columns.filter((column) => column !== null)
  const doubled = known.find((column, at) => known.indexOf(column) !== at)
  if (doubled !== undefined) return fill(t.refusals.doubled, { column: doubled })
  if (!known.includes('mac')) return t.refusals.noMac
  return known.length === 1 ? t.refusals.noColumn : null
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
      : refuse(fill(t.lineRefusals.cells, { found: cells.length, columns: columns.length })),
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
      const reason = fill(t.lineRefusals.notMac, { text: mac.refusal })
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
