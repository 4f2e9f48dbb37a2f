/** A list of BMCs as CSV: one row for each machine, the columns named in the first row. */
import { listFieldErrors, renderFieldErrors } from '../../../kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { parseMac, type Mac } from '../../../kit/net/rules/mac.ts'
import { BmcSchema, CredentialSchema, type Bmc } from './bmc.ts'
import type { PowerChange } from './power-book.ts'

/** The longest list, in bytes and rows. */
export const MAX_CSV_BYTES = 4 * 2 ** 20
const MAX_CSV_ROWS = 20_000
const MAX_MISTAKES = 20

const COLUMNS = ['mac', 'way', 'address', 'user', 'password', 'firmware', 'outlet', 'system']

/** The refusal lists what is wrong, by row; nothing of such a list is taken. */
export function parseBmcCsv(
  text: string,
): Result<ReadonlyMap<Mac, PowerChange>, readonly string[]> {
  const split = splitCsv(text.replace(/^\ufeff/, ''))
  const [head = [], ...rows] = split ?? []
  const names = head.map((name) => name.trim().toLowerCase())
  const obstacle = split === null ? BAD_QUOTE : refuseHead(names, rows.length)
  return obstacle === null ? parseRows(names, rows) : refuse([obstacle])
}

const BAD_QUOTE = 'A quote in the list has no other end, or stands within a cell.'

function refuseHead(names: readonly string[], rows: number): string | null {
  const isKnown = names.every((name) => COLUMNS.includes(name))
  if (!isKnown || !names.includes('mac') || !names.includes('way')) {
    return `The first row must name columns of ${COLUMNS.join(', ')}, mac and way among them.`
  }
  return rows > MAX_CSV_ROWS ? `The list has more than ${MAX_CSV_ROWS} rows.` : null
}

function parseRows(
  names: readonly string[],
  rows: readonly (readonly string[])[],
): Result<ReadonlyMap<Mac, PowerChange>, readonly string[]> {
  const changes = new Map<Mac, PowerChange>()
  const mistakes: string[] = []
  for (const [at, row] of rows.entries()) {
    const parsed = parseRow(names, row)
    if (!parsed.ok) mistakes.push(`Row ${at + 2}: ${parsed.refusal}`)
    else if (changes.has(parsed.value.mac)) mistakes.push(`Row ${at + 2}: this MAC comes twice`)
    else changes.set(parsed.value.mac, parsed.value.change)
    if (mistakes.length >= MAX_MISTAKES) break
  }
  return mistakes.length === 0 ? accept(changes) : refuse(mistakes)
}

function parseRow(
  names: readonly string[],
  row: readonly string[],
): Result<{ readonly mac: Mac; readonly change: PowerChange }, string> {
  if (row.length !== names.length) return refuse('it has another number of columns')
  const cells = Object.fromEntries(names.map((name, at) => [name, row[at]?.trim() ?? '']))
  const { mac = '', user = '', password: _, ...fields } = cells
  const parsedMac = parseMac(mac)
  if (!parsedMac.ok) return refuse('not a MAC address')
  const bmc = parseBmc(fields)
  if (!bmc.ok) return bmc
  // A password may begin or end with a blank.
  const password = row[names.indexOf('password')] ?? ''
  const credential = CredentialSchema.safeParse({ user, password })
  if (!credential.success) return refuse(renderFieldErrors(listFieldErrors(credential.error)))
  const isGiven = user !== '' || password !== ''
  const change = { bmc: bmc.value, credential: isGiven ? credential.data : undefined }
  return accept({ mac: parsedMac.value, change })
}

function parseBmc(fields: Readonly<Record<string, string>>): Result<Bmc, string> {
  if (fields['way'] === 'hook')
    return refuse('a hook has no columns for its URLs; set it by itself')
  const filled = Object.entries(fields).filter(([, cell]) => cell !== '')
  const bmc = BmcSchema.safeParse(Object.fromEntries(filled))
  return bmc.success ? accept(bmc.data) : refuse(renderFieldErrors(listFieldErrors(bmc.error)))
}

/** Rows of cells; a cell in quotes may hold commas, line ends, and quotes as two. Null: quotes are wrong. */
function splitCsv(text: string): readonly (readonly string[])[] | null {
  const rows: string[][] = []
  let row: string[] = []
  for (const [, quoted, plain = '', end] of text.matchAll(CELL)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    if (row.some((cell) => cell !== '')) rows.push(row)
    row = []
    if (end === '') return rows
  }
  return null
}

/** Sticky: it stops at what is no cell. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/gy
