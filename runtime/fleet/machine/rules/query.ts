/** Finds machines: the query language of tables, `mode:flash-once label:rack-1 -state:done seen:<1h nuc`, and what is selected there. */
import type { Inventory, InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { nearestOf } from '#kit/foundation/nearest.ts'

/** Keys are the language's words; texts are in lower case (`foldRow`). */
export interface Searchable {
  readonly text: string
  /** `label:rack-1` asks whether one of these is `rack-1`. */
  readonly fields: Readonly<Record<string, readonly string[]>>
  /** `seen:<1h` asks how long ago; milliseconds since the epoch. */
  readonly times: Readonly<Record<string, number | null>>
}

/** Lower case once a row, so that comparing costs nothing for each term. */
export const foldRow = <Row extends Searchable>(row: Row): Row => ({
  ...row,
  text: row.text.toLowerCase(),
  fields: Object.fromEntries(
    Object.entries(row.fields).map(([key, values]) => [
      key,
      values.map((value) => value.toLowerCase()),
    ]),
  ),
})

const asksForAge = (query: Query): boolean =>
  query.some(({ kind }) => kind === 'younger' || kind === 'older')

/** Words that stand before a colon; anything else with a colon is plain text. */
export interface Vocabulary {
  readonly fields: readonly string[]
  readonly times: readonly string[]
  /** The closed lists of values. */
  readonly values?: Readonly<Record<string, readonly string[]>>
  /** Words that stand before a colon in the texts themselves. */
  readonly prefixes?: readonly string[]
}

type Test =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'field'; readonly key: string; readonly values: readonly string[] }
  | { readonly kind: 'younger' | 'older'; readonly key: string; readonly seconds: number }
  | { readonly kind: 'never'; readonly key: string }

type Term = Test & { readonly isNegated: boolean }
type Query = readonly Term[]

/** Longer ones are cut: nobody types them. */
const MAX_LENGTH = 1000
const MAX_TERMS = 32
/** Blanks part terms, save between double quotes; an open quote ends with the text. */
const WORD = /(?:"[^"]*"?|[^\s"])+/g

const splitWords = (text: string): readonly string[] =>
  (text.slice(0, MAX_LENGTH).match(WORD) ?? []).slice(0, MAX_TERMS)

/** A filter without a value, or nothing between quotes; `aa:` is a part of an address. */
const EMPTY_TERM = /^-?(?:(?![0-9a-f]{1,4}:)[a-z_]+:[",]*|"+)$/i

interface UnheededTerm {
  readonly term: string
  /** It has no value, or too many terms stand before it. */
  readonly why: 'empty' | 'too-many'
}

/** Null: none. A script that acts on everything found has forgotten something in such a term. */
export function findUnheeded(text: string): UnheededTerm | null {
  const words = text.match(WORD) ?? []
  const empty = words.find((word) => EMPTY_TERM.test(word))
  if (empty !== undefined) return { term: empty, why: 'empty' }
  const late = words[splitWords(text).length]
  return late === undefined ? null : { term: late, why: 'too-many' }
}

/** Any text is a query: what is no filter is searched for as text. */
export function parseQuery(text: string, vocabulary: Vocabulary): Query {
  return splitWords(text).flatMap((word) => {
    const isNegated = word.length > 1 && word.startsWith('-')
    const test = parseTest(isNegated ? word.slice(1) : word, vocabulary)
    return test === null ? [] : [{ ...test, isNegated }]
  })
}

function parseTest(word: string, { fields, times }: Vocabulary): Test | null {
  const colon = word.indexOf(':')
  const key = word.slice(0, Math.max(0, colon)).toLowerCase()
  const rest = word.slice(colon + 1)
  if (times.includes(key)) {
    const test = parseTime(key, unquote(rest))
    if (test !== null) return test
  }
  if (fields.includes(key)) {
    const values = splitValues(rest)
    return values.length === 0 ? null : { kind: 'field', key, values }
  }
  const text = unquote(word)
  return text === '' ? null : { kind: 'text', text }
}

const unquote = (text: string) => text.replaceAll('"', '').toLowerCase()

/** `a,"b, c"`: commas part values, save between quotes. */
const splitValues = (text: string): readonly string[] =>
  (text.match(/(?:"[^"]*"?|[^",])+/g) ?? []).map(unquote).filter((value) => value !== '')

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** `<1h`, `>7d`, `never`; a bare `1h` means `<1h`. */
function parseTime(key: string, text: string): Test | null {
  if (text === 'never') return { kind: 'never', key }
  const [, sign, amount, unit] = /^([<>]?)(\d{1,6})([smhdw])$/.exec(text) ?? []
  const scale = UNITS[unit ?? '']
  if (scale === undefined) return null
  return { kind: sign === '>' ? 'older' : 'younger', key, seconds: Number(amount) * scale }
}

/** `row` comes from `foldRow`; `now` in milliseconds. */
export const matchesQuery = (query: Query, row: Searchable, now: number): boolean =>
  query.every((term) => matchesTest(term, row, now) !== term.isNegated)

function matchesTest(test: Test, row: Searchable, now: number): boolean {
  switch (test.kind) {
    case 'text':
      return row.text.includes(test.text)
    case 'field':
      return hasValue(row.fields[test.key] ?? [], test.values)
    case 'never':
      return (row.times[test.key] ?? null) === null
    case 'younger':
    case 'older': {
      const at = row.times[test.key] ?? null
      if (at === null) return false
      const isYoung = now - at < test.seconds * 1000
      return isYoung === (test.kind === 'younger')
    }
  }
}

/** Loops, as this runs for every row of a fleet and every filter of the page. */
function hasValue(values: readonly string[], wanted: readonly string[]): boolean {
  for (const one of wanted) for (const value of values) if (isMeant(one, value)) return true
  return false
}

const isMeant = (wanted: string, value: string) =>
  wanted.endsWith('*') ? value.startsWith(wanted.slice(0, -1)) : value === wanted

// Terms of a search that look like filters and are none, each with the filter that may be meant.

export interface QueryMistake {
  readonly term: string
  readonly what: 'filter' | 'value' | 'time'
  /** The term that may be meant; null: nothing is close. */
  readonly suggestion: string | null
  /** The whole search with the suggestion in it. */
  readonly corrected: string | null
}

/** Parts of a MAC or IPv6 address have colons, too, and are searched for as text. */
const ADDRESS = /^[0-9a-f]{0,4}$/
const KEY = /^[a-z_]+$/

/** `suggestion` and `corrected` are null if nothing known is close. */
export function listMistakes(text: string, vocabulary: Vocabulary): readonly QueryMistake[] {
  const words = splitWords(text)
  return words.flatMap((word, at) => {
    const sign = word.length > 1 && word.startsWith('-') ? '-' : ''
    const found = findMistake(word.slice(sign.length), vocabulary)
    if (found === null) return []
    const suggestion = found.suggestion === null ? null : `${sign}${found.suggestion}`
    const corrected =
      suggestion === null ? null : words.map((each, n) => (n === at ? suggestion : each)).join(' ')
    return [{ term: word, what: found.what, suggestion, corrected }]
  })
}

type FoundMistake = Pick<QueryMistake, 'what' | 'suggestion'>

function findMistake(word: string, vocabulary: Vocabulary): FoundMistake | null {
  const { fields, times, values = {} } = vocabulary
  const colon = word.indexOf(':')
  const [key, rest] = [word.slice(0, Math.max(0, colon)).toLowerCase(), word.slice(colon + 1)]
  if (times.includes(key)) {
    return parseTest(word, vocabulary)?.kind === 'text' ? { what: 'time', suggestion: null } : null
  }
  if (fields.includes(key)) return findWrongValue(key, rest, values[key])
  return isText(key, rest, vocabulary) ? null : findFilter(key, rest, vocabulary)
}

const isText = (key: string, rest: string, { prefixes = [] }: Vocabulary): boolean =>
  ADDRESS.test(key) || !KEY.test(key) || prefixes.includes(key) || rest.startsWith('//')

function findFilter(key: string, rest: string, { fields, times }: Vocabulary): FoundMistake {
  const nearest = nearestOf(key, [...fields, ...times])
  return { what: 'filter', suggestion: nearest === null ? null : `${nearest}:${rest}` }
}

/** Fields without a closed list of values have no wrong ones. */
function findWrongValue(
  key: string,
  rest: string,
  known: readonly string[] | undefined,
): FoundMistake | null {
  const given = splitValues(rest)
  const isWrong = (value: string) => !value.endsWith('*') && known?.includes(value) === false
  if (!given.some(isWrong)) return null
  const meant = given.map((value) => (isWrong(value) ? nearestOf(value, known ?? []) : value))
  const suggestion = meant.includes(null) ? null : `${key}:${meant.join(',')}`
  return { what: 'value', suggestion }
}

/** For all their disks together: 60,000 ordinary ones. */
export const MAX_UNASSIGNED_BYTES = 64 * 2 ** 20
/** Beyond that, each machine keeps so many disks, as far as they fit. */
export const MAX_SHORT_DISKS = 64
export const MAX_SHORT_BYTES = 8 * 2 ** 10

/** What a disk costs without its texts. */
const DISK_BYTES = 512
/** A text is kept twice (as it is and in the record), at up to two bytes a character. */
const CHARACTER_BYTES = 4

export function weighDisks(disks: readonly InventoryDisk[]): number {
  let characters = 0
  for (const disk of disks) characters += countCharacters(disk)
  return disks.length * DISK_BYTES + characters * CHARACTER_BYTES
}

const countCharacters = ({
  path,
  size,
  vendor,
  model,
  serial,
  tran,
  wwn,
  by_path,
}: InventoryDisk) =>
  [path, size, vendor, model, serial, tran, wwn, by_path].reduce(
    (sum, text) => sum + (text?.length ?? 0),
    0,
  )

/** `others`: bytes that the disks of all other such machines cost. */
export function shortenList(inventory: Inventory, others: number): Inventory {
  const { disks, disksLeftOut } = inventory
  if (others + weighDisks(disks) <= MAX_UNASSIGNED_BYTES) return inventory
  const kept = pickFirst(disks)
  const leftOut = disks.length - kept.length
  return leftOut === 0
    ? inventory
    : { ...inventory, disks: kept, disksLeftOut: disksLeftOut + leftOut, isShortened: true }
}

/** Disks that can be flashed come first. */
function pickFirst(disks: readonly InventoryDisk[]): readonly InventoryDisk[] {
  const kept: InventoryDisk[] = []
  let bytes = 0
  for (const disk of disks.toSorted((a, b) => Number(isKeptBack(a)) - Number(isKeptBack(b)))) {
    bytes += weighDisks([disk])
    if (kept.length === MAX_SHORT_DISKS || bytes > MAX_SHORT_BYTES) return kept
    kept.push(disk)
  }
  return kept
}

const isKeptBack = ({ readonly, size_bytes: bytes }: InventoryDisk) => readonly || bytes === 0

export interface Description extends Searchable {
  readonly order: Readonly<Record<string, SortKey>>
}

interface SelectionQuery {
  readonly text: string
  /** A column's name, `-` before it reverses; an unknown one sorts nothing. */
  readonly sort: string | null
}

interface SelectorOptions<Row, Context extends object> {
  readonly vocabulary: Vocabulary
  /** Called once for a row and a context: rows are replaced, never changed. */
  readonly describe: (row: Row, context: Context) => Description
}

/** `context`: what descriptions depend on beside the row; `now` in milliseconds. */
type Select<Row, Context> = (
  rows: readonly Row[],
  query: SelectionQuery,
  on: { readonly context: Context; readonly now: number },
) => readonly Row[]

/** Pages that show the same thing share an answer. */
const MAX_KEPT = 32
/** How long "less than an hour ago" may lag. */
const AGE_STEP_MS = 5000

/**
 * Remembers its work: a changed row costs its description alone. Of 10,000 rows on one core: 150 ms
 * to describe all once, then 2 ms a filter, 10 ms a sort.
 */
export function createSelector<Row extends object, Context extends object>({
  vocabulary,
  describe,
}: SelectorOptions<Row, Context>): Select<Row, Context> {
  let descriptions = new WeakMap<Row, Description>()
  let under: Context | null = null
  /** One for each list in use: the whole one, and those of people with a scope. */
  let lists = new WeakMap<readonly Row[], KeptWork<Row>>()

  const describeOnce = (row: Row, context: Context): Description =>
    descriptions.getOrInsertComputed(row, () => foldRow(describe(row, context)))

  function answer(
    rows: readonly Row[],
    work: KeptWork<Row>,
    query: Query,
    sort: string | null,
    on: { readonly context: Context; readonly now: number },
  ): readonly Row[] {
    if (query.length === 0 && sort === null) return rows
    const described = (work.described ??= rows.map((row) => ({
      row,
      is: describeOnce(row, on.context),
    })))
    const found =
      query.length === 0 ? described : described.filter(({ is }) => matchesQuery(query, is, on.now))
    const sorted =
      sort === null ? found : sortRows(found, sort, ({ is }, column) => is.order[column] ?? null)
    return sorted.map(({ row }) => row)
  }

  return (rows, { text, sort }, { context, now }) => {
    if (context !== under) {
      descriptions = new WeakMap()
      lists = new WeakMap()
    }
    under = context
    const work = lists.getOrInsertComputed(rows, () => ({ described: null, kept: new Map() }))
    const { kept } = work
    const query = parseQuery(text, vocabulary)
    const age = asksForAge(query) ? Math.floor(now / AGE_STEP_MS) : 0
    const key = JSON.stringify([text, sort, age])
    const before = kept.get(key)
    if (before !== undefined) return before
    const found = answer(rows, work, query, sort, { context, now })
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(key, found)
    return found
  }
}

interface KeptWork<Row> {
  described: readonly Described<Row>[] | null
  readonly kept: Map<string, readonly Row[]>
}

interface Described<Row> {
  readonly row: Row
  readonly is: Description
}

/** Null comes last either way. */
export type SortKey = string | number | null

/** Stable. `sort` is as in `SelectionQuery`. */
export function sortRows<Row>(
  rows: readonly Row[],
  sort: string,
  keyOf: (row: Row, column: string) => SortKey,
): readonly Row[] {
  const isDown = sort.startsWith('-')
  const column = isDown ? sort.slice(1) : sort
  return rows.toSorted((a, b) => compare(keyOf(a, column), keyOf(b, column), isDown))
}

function compare(a: SortKey, b: SortKey, isDown: boolean): number {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return (a < b ? -1 : 1) * (isDown ? -1 : 1)
}
