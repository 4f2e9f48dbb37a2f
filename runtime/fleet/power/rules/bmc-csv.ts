/** A list of BMCs as CSV: one line for each machine, the columns named in the first one. */
import { unguardCell } from '#kit/foundation/csv.ts'
import {
  parseCsv,
  type CsvLimits,
  type CsvRefusal,
  type CsvRow,
} from '#kit/foundation/csv-reader.ts'
import { listFieldErrors, renderFieldErrors } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { findMac, type Mac } from '#kit/net/rules/mac.ts'
import { BmcSchema, CredentialSchema, type Bmc, type PowerChange } from './bmc.ts'

export const MAX_CSV_BYTES = 4 * 2 ** 20
const LIMITS: CsvLimits = { rows: 20_001, columns: 100, characters: 10_000 }
const MAX_MISTAKES = 20

const COLUMNS = ['mac', 'way', 'address', 'user', 'password', 'firmware', 'outlet', 'system']

/** The refusal lists mistakes by line; then nothing is taken. */
export function parseBmcCsv(
  text: string,
): Result<ReadonlyMap<Mac, PowerChange>, readonly string[]> {
  const parsed = parseCsv(text, LIMITS)
  if (!parsed.ok) return refuse([`Line ${parsed.refusal.line}: ${OBSTACLES[parsed.refusal.why]}`])
  const { columns, rows } = parsed.value
  const names = columns.map((name) => name.trim().toLowerCase())
  return isHead(names) ? parseRows(names, rows) : refuse([BAD_HEAD])
}

const OBSTACLES: Readonly<Record<CsvRefusal['why'], string>> = {
  nul: 'bytes that are no text',
  'open-quote': 'a quote has no other end',
  'after-quote': 'something stands behind the quote that ends a cell',
  rows: `the list has more than ${LIMITS.rows - 1} machines`,
  columns: `it has more than ${LIMITS.columns} columns`,
  characters: `a cell has more than ${LIMITS.characters} characters`,
}

const BAD_HEAD = `The first line must name columns of ${COLUMNS.join(', ')}, each once, mac and way among them.`

const isHead = (names: readonly string[]): boolean =>
  names.every((name, at) => COLUMNS.includes(name) && names.indexOf(name) === at) &&
  names.includes('mac') &&
  names.includes('way')

function parseRows(
  names: readonly string[],
  rows: readonly CsvRow[],
): Result<ReadonlyMap<Mac, PowerChange>, readonly string[]> {
  const changes = new Map<Mac, PowerChange>()
  const mistakes: string[] = []
  for (const { line, ...row } of rows) {
    const parsed = parseRow(names, row)
    if (!parsed.ok) mistakes.push(`Line ${line}: ${parsed.refusal}`)
    else if (changes.has(parsed.value.mac)) mistakes.push(`Line ${line}: this MAC comes twice`)
    else changes.set(parsed.value.mac, parsed.value.change)
    if (mistakes.length >= MAX_MISTAKES) break
  }
  return mistakes.length === 0 ? accept(changes) : refuse(mistakes)
}

function parseRow(
  names: readonly string[],
  { cells: row, fits }: Omit<CsvRow, 'line'>,
): Result<{ readonly mac: Mac; readonly change: PowerChange }, string> {
  if (!fits) {
    return refuse(`it has ${row.length} cells, the first line names ${names.length} columns`)
  }
  const cells = Object.fromEntries(
    names.map((name, at) => [name, unguardCell(row[at] ?? '').trim()]),
  )
  const { mac: text = '', user = '', password: _, ...fields } = cells
  const mac = findMac(text)
  if (mac === null) return refuse('not a MAC address')
  const bmc = parseBmc(fields)
  if (!bmc.ok) return bmc
  // A password may begin or end with a blank.
  const password = row[names.indexOf('password')] ?? ''
  const credential = CredentialSchema.safeParse({ user, password })
  if (!credential.success) return refuse(renderFieldErrors(listFieldErrors(credential.error)))
  const isGiven = user !== '' || password !== ''
  const change = { bmc: bmc.value, credential: isGiven ? credential.data : undefined }
  return accept({ mac, change })
}

function parseBmc(fields: Readonly<Record<string, string>>): Result<Bmc, string> {
  if (fields['way'] === 'hook')
    return refuse('a hook has no columns for its URLs; set it by itself')
  const filled = Object.entries(fields).filter(([, cell]) => cell !== '')
  const bmc = BmcSchema.safeParse(Object.fromEntries(filled))
  return bmc.success ? accept(bmc.data) : refuse(renderFieldErrors(listFieldErrors(bmc.error)))
}
